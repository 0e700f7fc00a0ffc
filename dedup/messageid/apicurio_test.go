package messageid_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup/messageid"
)

// What Apicurio's serializer for Avro 3.1.7 wrote, with Apicurio Registry 3.3.3: the content has
// number 4, and its versions in the topics' artifacts have 5 and 7.
func TestSchemasOfApicuriosSerializersAreFound(t *testing.T) {
	const body = "\x02n\x06a-1"
	schema := messageid.Schema{Type: "avro", Text: `{"type":"record","name":"Order",` +
		`"namespace":"shop","fields":[{"name":"note","type":"string"},{"name":"id","type":"string"}]}`}
	another := messageid.Schema{Type: "avro", Text: `{"type":"record","name":"Other",` +
		`"namespace":"shop","fields":[{"name":"id","type":"string"}]}`}
	refs := map[messageid.Ref]messageid.Schema{
		messageid.NumberRef(messageid.RefContentID, 4): schema,
		messageid.NumberRef(messageid.RefContentID, 5): another, // the versions' numbers are others
		messageid.NumberRef(messageid.RefGlobalID, 4):  another,
		messageid.NumberRef(messageid.RefGlobalID, 5):  schema,
		messageid.NumberRef(messageid.RefGlobalID, 7):  schema,
	}
	number := func(n byte) string { return "\x00\x00\x00\x00\x00\x00\x00" + string(n) }
	for _, c := range []struct {
		name    string
		numbers messageid.RefKind
		value   string
		headers []string
	}{
		{"by default", messageid.RefContentID, "\x00\x00\x00\x00\x04" + body, nil},
		{"use-id: globalId", messageid.RefGlobalID, "\x00\x00\x00\x00\x05" + body, nil},
		{"headers", messageid.RefContentID, body, []string{"apicurio.value.contentId", number(4),
			"apicurio.value.encoding", "BINARY"}},
		{"headers and use-id: globalId", messageid.RefContentID, body, []string{
			"apicurio.value.globalId", number(7), "apicurio.value.encoding", "BINARY"}},
	} {
		l := library{&shelf{}, refs, messageid.Framing{Numbers: c.numbers}}
		e := mustExtractor(t, messageid.Source{From: "avro", Path: "id", Registry: l})
		r := &kgo.Record{Value: []byte(c.value), Headers: headers(c.headers...)}
		if id, missing := extract(t, e, r); id != "a-1" || missing != 0 {
			t.Errorf("%s: %q, %v", c.name, id, missing)
		}
	}
}
