package proposal

import (
	"bytes"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup/messageid"
)

// frame is what serializers of Confluent's kind write before a value: a zero, and the ID of its
// schema.
const frame = 5

// Serialized is how the values of a topic name their schemas, without which nobody can read them.
type Serialized struct {
	// Type of the schema registry, as schema_registry.type has it, whose serializers write so.
	// Where those of several do, it is the most common one.
	Type     string
	Have, Of int // records that are so, and those that have a value
	how      string
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

// framings are the ways in which values name their schemas, and what a person is told of each.
var framings = []struct {
	kind string
	on   func(r *kgo.Record) (how string)
}{
	{"apicurio", func(r *kgo.Record) string {
		return inHeader(r, func(name string) bool { return strings.HasPrefix(name, "apicurio.") })
	}},
	{"confluent", func(r *kgo.Record) string {
		return inHeader(r, func(name string) bool { return !strings.HasPrefix(name, "apicurio.") })
	}},
	{"azure", func(r *kgo.Record) string {
		if !messageid.IsAzure(r) {
			return ""
		}
		return "the header content-type names the schema of the value in Azure's registry"
	}},
	{"glue", func(r *kgo.Record) string {
		if !messageid.IsGlue(r.Value) {
			return ""
		}
		return "the value begins with the header of the AWS Glue schema registry"
	}},
	{"files", func(r *kgo.Record) string {
		if !messageid.IsSingleObject(r.Value) {
			return ""
		}
		return "the value is in Avro's single-object encoding, which names its schema by a fingerprint"
	}},
	{"confluent", func(r *kgo.Record) string {
		if len(r.Value) <= frame || r.Value[0] != 0 || isDocument(r.Value[frame:]) {
			return ""
		}
		return "the value stands behind the ID of a schema"
	}},
}

func inHeader(r *kgo.Record, is func(name string) bool) string {
	name := messageid.SchemaHeader(r, false)
	if name == "" || !is(name) {
		return ""
	}
	return "the header " + name + " names the schema of the value"
}

// Serialized is how most of the values name their schemas. Documents that stand there as they are
// can be read, whatever names their schema. A topic whose producers change has more than one way:
// then it is the one of the most records, and the records of all ways of that registry count.
func (s Sample) Serialized() (found Serialized, is bool) {
	found = serialized(s.Records)
	return found, found.Type != ""
}

func serialized(records []*kgo.Record) (found Serialized) {
	type way struct{ kind, how string }
	ways := make(map[way]int)
	kinds, of := make(map[string]int), 0
	for _, r := range records {
		if r.Value == nil {
			continue
		}
		of++
		if isDocument(r.Value) {
			continue
		}
		for _, framing := range framings {
			if how := framing.on(r); how != "" {
				ways[way{framing.kind, how}]++
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
		if w.kind == found.Type && (n > most || n == most && w.how < found.how) {
			found.how, most = w.how, n
		}
	}
	return found
}

func isDocument(value []byte) bool {
	value = bytes.TrimLeft(value, " \t\r\n")
	return len(value) > 0 && (value[0] == '{' || value[0] == '[')
}
