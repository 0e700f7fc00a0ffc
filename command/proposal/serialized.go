package proposal

import (
	"bytes"
	"encoding/binary"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup/messageid"
)

// frame is what serializers of Confluent's kind write before a value: a zero, and the ID of its
// schema.
const frame = 5

// Serialized is how the values of a topic, or its keys, name their schemas, without which nobody
// can read them.
type Serialized struct {
	// Type of the schema registry, as schema_registry.type has it, whose serializers write so.
	// Where those of several do, it is the most common one.
	Type     string
	Have, Of int // records that are so, and those that have a value, or a key
	how      string
	before   bool // the name stands before the value or the key, and is a part of its bytes
}

// Seen is a sentence without an end.
func (s Serialized) Seen() string { return "on " + portion(s.Have, s.Of) + " " + s.how }

// remedy says what a registry has to do with the values; empty: nothing.
func (s Serialized) remedy() string {
	if s.Type == "" {
		return ""
	}
	section, of := "schema_registry", "a schema registry"
	switch s.Type {
	case "files":
		of, section = "the files of the schemas", "schema_registry: {type: files, schemas: [FILE]}"
	case "confluent":
	default:
		section = "schema_registry.type: " + s.Type + ", with its urls,"
	}
	return s.Seen() + ". Its fields can be read with " + of + " only: write " + section +
		" and message_id: {from: avro, path: FIELD} (or protobuf) into the file, or let kdedup " +
		"init look by --registry"
}

// parts of a record that name schemas, as people call them.
const (
	aValue = "the value"
	aKey   = "the key"
)

// framings are the ways in which values and keys name their schemas, and what a person is told of
// each. Of some the name is a part of the bytes.
var framings = []struct {
	kind   string
	before bool
	on     func(r *kgo.Record, what string, part []byte) (how string)
}{
	{"apicurio", false, func(r *kgo.Record, what string, _ []byte) string {
		return inHeader(r, what, func(name string) bool {
			return strings.HasPrefix(name, "apicurio.")
		})
	}},
	{"confluent", false, func(r *kgo.Record, what string, _ []byte) string {
		return inHeader(r, what, func(name string) bool {
			return !strings.HasPrefix(name, "apicurio.")
		})
	}},
	{"azure", false, func(r *kgo.Record, what string, _ []byte) string {
		if what == aKey || !messageid.IsAzure(r) {
			return ""
		}
		return "the header content-type names the schema of the value in Azure's registry"
	}},
	{"glue", true, func(_ *kgo.Record, what string, part []byte) string {
		if !messageid.IsGlue(part) {
			return ""
		}
		return what + " begins with the header of the AWS Glue schema registry"
	}},
	{"files", true, func(_ *kgo.Record, what string, part []byte) string {
		if !messageid.IsSingleObject(part) {
			return ""
		}
		return what + " is in Avro's single-object encoding, which names its schema by a " +
			"fingerprint"
	}},
	{"confluent", true, func(_ *kgo.Record, what string, part []byte) string {
		if len(part) <= frame || part[0] != 0 || isDocument(part[frame:]) ||
			what == aKey && isSerializedNumber(part) {
			return ""
		}
		return what + " stands behind the ID of a schema"
	}},
}

// isSerializedNumber reports whether a key is rather what Kafka's LongSerializer writes, eight
// bytes of which the first are zeros, than a number or a text of Avro behind the ID of its schema.
func isSerializedNumber(key []byte) bool {
	if len(key) != 8 {
		return false
	}
	body := key[frame:]
	number, n := binary.Varint(body)
	isText := n == 1 && number == int64(len(body)-1)
	return binary.BigEndian.Uint32(key[1:]) == 0 || n != len(body) && !isText
}

func inHeader(r *kgo.Record, what string, is func(name string) bool) string {
	name := messageid.SchemaHeader(r, what == aKey)
	if name == "" || !is(name) {
		return ""
	}
	return "the header " + name + " names the schema of " + what
}

// Serialized is how most of the values name their schemas, or, if they name none, the keys.
// Documents that stand there as they are can be read, whatever names their schema. A topic whose
// producers change has more than one way: then it is the one of the most records, and the records
// of all ways of that registry count.
func (s Sample) Serialized() (found Serialized, is bool) {
	if found = serialized(s.Records, aValue); found.Type == "" {
		found = serialized(s.Records, aKey)
	}
	return found, found.Type != ""
}

func serialized(records []*kgo.Record, what string) (found Serialized) {
	type way struct {
		kind, how string
		before    bool
	}
	ways := make(map[way]int)
	kinds, of := make(map[string]int), 0
	for _, r := range records {
		part := r.Value
		if what == aKey {
			part = r.Key
		}
		if part == nil {
			continue
		}
		of++
		if isDocument(part) {
			continue
		}
		for _, framing := range framings {
			if how := framing.on(r, what, part); how != "" {
				ways[way{framing.kind, how, framing.before}]++
				kinds[framing.kind]++
				break
			}
		}
	}
	for _, framing := range framings {
		if n := kinds[framing.kind]; n > found.Have && share(n, of) > 0.5 {
			found = Serialized{Type: framing.kind, Have: n, Of: of}
		}
	}
	most := 0
	for w, n := range ways {
		if w.kind != found.Type {
			continue
		}
		found.before = found.before || w.before
		if n > most || n == most && w.how < found.how {
			found.how, most = w.how, n
		}
	}
	return found
}

func isDocument(value []byte) bool {
	value = bytes.TrimLeft(value, " \t\r\n")
	return len(value) > 0 && (value[0] == '{' || value[0] == '[')
}
