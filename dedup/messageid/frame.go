package messageid

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
)

// RefKind is how a record names its schema. It is as wide as the rest of a Ref: so a map hashes one
// piece of memory.
type RefKind uint64

const (
	RefID          RefKind = iota // a registry's number, as Confluent's serializers write it
	RefGUID                       // Confluent's GUID, 16 bytes
	RefContentID                  // Apicurio's number of a content
	RefGlobalID                   // Apicurio's number of a version
	RefFingerprint                // CRC-64-AVRO of the schema, of Avro's single-object encoding
	RefGlue                       // UUID of a schema's version in the AWS Glue schema registry
	RefAzure                      // GUID of Azure's schema registry
	RefConfigured                 // none: the configuration names the schema
)

// Ref names a schema.
type Ref struct {
	Kind     RefKind
	high, id uint64
}

// Number is the number, of all kinds but RefGUID.
func (r Ref) Number() uint64 { return r.id }

// GUID are the bytes of a RefGUID, a RefGlue or a RefAzure.
func (r Ref) GUID() (guid [16]byte) {
	binary.BigEndian.PutUint64(guid[:], r.high)
	binary.BigEndian.PutUint64(guid[8:], r.id)
	return guid
}

// String is the name as the registry writes it.
func (r Ref) String() string {
	switch r.Kind {
	case RefGUID, RefGlue:
		g := r.GUID()
		return fmt.Sprintf("%x-%x-%x-%x-%x", g[:4], g[4:6], g[6:8], g[8:10], g[10:])
	case RefAzure:
		return fmt.Sprintf("%x", r.GUID())
	case RefContentID:
		return fmt.Sprintf("contentId %d", r.id)
	case RefGlobalID:
		return fmt.Sprintf("globalId %d", r.id)
	case RefFingerprint:
		return fmt.Sprintf("fingerprint %016x", r.id)
	case RefConfigured:
		return "of the entry"
	}
	return strconv.FormatUint(r.id, 10)
}

// NumberRef names a schema by a number.
func NumberRef(kind RefKind, number uint64) Ref { return Ref{Kind: kind, id: number} }

// GUIDRef names a schema by a GUID of Confluent's.
func GUIDRef(guid [16]byte) Ref { return UUIDRef(RefGUID, guid) }

// UUIDRef names a schema by 16 bytes.
func UUIDRef(kind RefKind, id [16]byte) Ref {
	return Ref{kind, binary.BigEndian.Uint64(id[:]), binary.BigEndian.Uint64(id[8:])}
}

// Framing says how the records of a topic name their schemas, where that is not clear from them.
type Framing struct {
	In      string  // InAny, the default: in a header if there is one, and else before the value
	Numbers RefKind // what a number before a value is: RefID, RefContentID or RefGlobalID
	Long    bool    // such a number has eight bytes, not four
	Of      string  // FramingGlue or FramingAzure: theirs alone, and nothing of the above
	// Value is the full name of the schema that all values have, and no value names one. Nothing
	// else is looked for in a value then.
	Value string
}

// Framings of cloud providers.
const (
	FramingGlue  = "glue"
	FramingAzure = "azure"
)

// Places of a schema's name.
const (
	InAny    = "any"
	InValue  = "value"
	InHeader = "header"
)

// frame is what a record says of its schema.
type frame struct {
	ref     Ref
	body    []byte
	indexes []byte // of a Protobuf message, if they do not stand before it
	apart   bool   // they do not
	ordinal bool   // one number before the message stands for them, as Glue's serializers have it
	packed  bool   // the body is compressed, and was not unpacked yet
}

// message is which of a Protobuf schema's messages the frame has, and the message.
func (f *frame) message(to []int, c *compiled) (indexes []int, message []byte, ok bool) {
	if f.ordinal {
		return f.ordinalMessage(c.ordinals)
	}
	if !f.apart {
		return messageOf(to, f.body)
	}
	indexes, rest, ok := messageOf(to, f.indexes)
	return indexes, f.body, ok && len(rest) == 0
}

// singleObject begins a record in Avro's single-object encoding; eight bytes of a fingerprint
// follow, the lowest first.
const (
	singleObject       = "\xC3\x01"
	singleObjectHeader = 10
)

// open splits the frame from what is behind it.
func (s *schemas) open(r *kgo.Record, f *frame) dedup.MissingReason {
	part := r.Value
	if s.ofKey {
		part = r.Key
	}
	if part == nil {
		return dedup.MissingNull
	}
	switch {
	case s.framing.Value != "" && !s.ofKey:
		if len(part) == 0 {
			return dedup.MissingEmpty
		}
		f.ref, f.body = Ref{Kind: RefConfigured}, part
		f.apart, f.indexes = true, firstMessage
		return dedup.NotMissing
	case s.framing.Of == FramingGlue:
		return f.openGlue(part)
	case s.framing.Of == FramingAzure:
		return s.openAzure(r, part, f)
	}
	if len(r.Headers) > 0 && s.framing.In != InValue {
		named, missing := s.inHeaders(r, f)
		if missing != dedup.NotMissing {
			return missing
		}
		if named {
			f.body, f.apart = part, true
			return dedup.NotMissing
		}
	}
	switch {
	case len(part) == 0:
		return dedup.MissingEmpty
	case s.framing.In == InHeader:
		return dedup.MissingUnframed
	case part[0] == 0 && s.framing.Long && len(part) >= 1+8:
		f.ref, f.body = NumberRef(s.framing.Numbers, binary.BigEndian.Uint64(part[1:])), part[1+8:]
	case part[0] == 0 && !s.framing.Long && len(part) >= schemaFrame:
		f.ref = NumberRef(s.framing.Numbers, uint64(binary.BigEndian.Uint32(part[1:])))
		f.body = part[schemaFrame:]
	case IsSingleObject(part):
		f.ref = NumberRef(RefFingerprint, binary.LittleEndian.Uint64(part[2:]))
		f.body = part[singleObjectHeader:]
	default:
		if isGlue(part) {
			s.news.tell(glueNotice)
		}
		return dedup.MissingUnframed
	}
	return dedup.NotMissing
}

// firstMessage are the indexes of a schema's first message.
var firstMessage = []byte{0}

const glueNotice = "records begin with the header of the AWS Glue schema registry: write " +
	"schema_registry.type: glue"
