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
)

// Ref names a schema.
type Ref struct {
	Kind     RefKind
	high, id uint64
}

// Number is the number, of all kinds but RefGUID.
func (r Ref) Number() uint64 { return r.id }

// GUID are the bytes of a RefGUID.
func (r Ref) GUID() (guid [16]byte) {
	binary.BigEndian.PutUint64(guid[:], r.high)
	binary.BigEndian.PutUint64(guid[8:], r.id)
	return guid
}

// String is the name as the registry writes it.
func (r Ref) String() string {
	switch r.Kind {
	case RefGUID:
		g := r.GUID()
		return fmt.Sprintf("%x-%x-%x-%x-%x", g[:4], g[4:6], g[6:8], g[8:10], g[10:])
	case RefContentID:
		return fmt.Sprintf("contentId %d", r.id)
	case RefGlobalID:
		return fmt.Sprintf("globalId %d", r.id)
	case RefFingerprint:
		return fmt.Sprintf("fingerprint %016x", r.id)
	}
	return strconv.FormatUint(r.id, 10)
}

// NumberRef names a schema by a number.
func NumberRef(kind RefKind, number uint64) Ref { return Ref{Kind: kind, id: number} }

// GUIDRef names a schema by a GUID.
func GUIDRef(guid [16]byte) Ref {
	return Ref{RefGUID, binary.BigEndian.Uint64(guid[:]), binary.BigEndian.Uint64(guid[8:])}
}

// Framing says how the records of a topic name their schemas, where that is not clear from them.
type Framing struct {
	In      string  // InAny, the default: in a header if there is one, and else before the value
	Numbers RefKind // what a number before a value is: RefID, RefContentID or RefGlobalID
	Long    bool    // such a number has eight bytes, not four
}

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
}

// message is which of a Protobuf schema's messages the frame has, and the message.
func (f *frame) message(to []int) (indexes []int, message []byte, ok bool) {
	if !f.apart {
		return messageOf(to, f.body)
	}
	indexes, rest, ok := messageOf(to, f.indexes)
	return indexes, f.body, ok && len(rest) == 0
}

// singleObject begins a record in Avro's single-object encoding; eight bytes of a fingerprint
// follow, the lowest first.
const singleObject = "\xC3\x01"

// open splits the frame from what is behind it.
func (s *schemas) open(r *kgo.Record, f *frame) dedup.MissingReason {
	part := r.Value
	if s.ofKey {
		part = r.Key
	}
	if part == nil {
		return dedup.MissingNull
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
	case len(part) >= 10 && string(part[:2]) == singleObject:
		f.ref = NumberRef(RefFingerprint, binary.LittleEndian.Uint64(part[2:]))
		f.body = part[10:]
	default:
		if isGlue(part) {
			s.news.tell(glueNotice)
		}
		return dedup.MissingUnframed
	}
	return dedup.NotMissing
}

const glueNotice = "records begin with the header of the AWS Glue schema registry, which kdedup " +
	"does not read: have the producers write Confluent's wire format, or put the ID in a header"

// isGlue recognises a 3, the compression (none or zlib) and the schema's UUID.
func isGlue(part []byte) bool {
	return len(part) >= 18 && part[0] == 3 && (part[1] == 0 || part[1] == 5)
}
