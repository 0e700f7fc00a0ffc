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

// serialized says what a registry has to do with the values of most records, which nobody can read
// without it; empty: nothing. A document behind the ID of a schema can be read.
func serialized(records []*kgo.Record) string {
	framed, named, glue, of, header := 0, 0, 0, 0, ""
	for _, r := range records {
		if r.Value == nil {
			continue
		}
		of++
		if isDocument(r.Value) {
			continue
		}
		name := messageid.SchemaHeader(r, false)
		switch {
		case name != "":
			named, header = named+1, name
		case messageid.IsGlue(r.Value):
			glue++
		case len(r.Value) > frame && r.Value[0] == 0 && !isDocument(r.Value[frame:]):
			framed++
		}
	}
	switch {
	case share(named, of) > 0.5:
		kind := ""
		if strings.HasPrefix(header, "apicurio.") {
			kind = ", with schema_registry.type: apicurio"
		}
		return "on " + portion(named, of) + " the header " + header + " names the schema of the " +
			"value. Its fields can be read with a schema registry only" + kind + ": write " +
			"schema_registry and message_id: {from: avro, path: FIELD} (or protobuf) into the file"
	case share(glue, of) > 0.5:
		return "on " + portion(glue, of) + " the value begins with the header of the AWS Glue " +
			"schema registry. Its fields can be read with the registry only: write " +
			"schema_registry: {type: glue} and message_id: {from: avro, path: FIELD} (or protobuf) " +
			"into the file"
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
