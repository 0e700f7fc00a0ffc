package proposal

import (
	"bytes"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// frame is what serializers of Confluent's kind write before a value: a zero, and the ID of its
// schema.
const frame = 5

// headerSigns begin the names of headers in which serializers name a value's schema.
var headerSigns = []string{"apicurio.value.", "__value_schema_id"}

// serialized says what a registry has to do with the values of most records, which nobody can read
// without it; empty: nothing. A document behind the ID of a schema can be read.
func serialized(records []*kgo.Record) string {
	framed, named, of, header := 0, 0, 0, ""
	for _, r := range records {
		if r.Value == nil {
			continue
		}
		of++
		if isDocument(r.Value) {
			continue
		}
		name := schemaHeader(r)
		switch {
		case name != "":
			named, header = named+1, name
		case len(r.Value) > frame && r.Value[0] == 0 && !isDocument(r.Value[frame:]):
			framed++
		}
	}
	switch {
	case share(named, of) > 0.5:
		return "on " + portion(named, of) + " the header " + header + " names the schema of the " +
			"value. kdedup reads IDs of schemas only in the five bytes before a value, as " +
			"Confluent's serializers write them by default: let the producer write them there " +
			"(Apicurio: apicurio.registry.headers.enabled=false), or name a header or the key"
	case share(framed, of) > 0.5:
		return "on " + portion(framed, of) + " the value stands behind the ID of a schema. Its " +
			"fields can be read with a schema registry only: write schema_registry and " +
			"message_id: {from: avro, path: FIELD} (or protobuf) into the file"
	}
	return ""
}

func isDocument(value []byte) bool {
	value = bytes.TrimLeft(value, " \t\r\n")
	return len(value) > 0 && (value[0] == '{' || value[0] == '[')
}

func schemaHeader(r *kgo.Record) string {
	for _, h := range r.Headers {
		for _, sign := range headerSigns {
			if strings.HasPrefix(strings.ToLower(h.Key), sign) {
				return h.Key
			}
		}
	}
	return ""
}
