package connect

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/dedup/messageid"
)

// What validate and setup say of an input's newest records.
func TestTheNewestRecordsTellWhatMayNotBeKnown(t *testing.T) {
	context := []kgo.RecordHeader{{Key: "__debezium.context.connectorName", Value: []byte("x")}}
	schema := []kgo.RecordHeader{{Key: "__value_schema_id",
		Value: []byte("\x01abcdefghijklmnop")}}
	flat := "2 are rows without their change"
	for _, c := range []struct {
		name    string
		id      config.MessageID
		headers []kgo.RecordHeader
		want    string
	}{
		{"flat rows by value_hash", config.MessageID{From: config.FromValueHash}, context, flat},
		{"flat rows by the preset", config.MessageID{From: config.FromDebezium}, context, flat},
		{"flat rows by an ID", config.MessageID{From: config.FromJSON, Path: "id"}, context, ""},
		{"other rows", config.MessageID{From: config.FromValueHash}, nil, ""},
		{"schemas in headers", config.MessageID{From: config.FromJSONSchema, Path: "id"}, schema,
			"2 have the schema in a header"},
		{"the value's in that of the key", config.MessageID{From: config.FromJSONSchema, Path: "id",
			Part: config.PartKey}, schema, ""},
	} {
		topic := orders()
		topic.MessageID = c.id
		e, err := ExtractorOf(topic, nil)
		if err != nil {
			t.Fatal(err)
		}
		n := Newest{entry: Entry{Topic: topic, Extractor: e}, codecs: make(map[uint8]bool),
			headers: make(map[string]bool), field: make(map[string]bool)}
		for _, state := range []string{"a", "b"} {
			r := &kgo.Record{Value: []byte(`{"id":1,"state":"` + state + `"}`), Headers: c.headers}
			_, missing := e.Extract(r)
			n.look(r, missing)
		}
		text := n.String()
		told := strings.Contains(text, flat) || strings.Contains(text, "in a header")
		if c.want == "" && told || !strings.Contains(text, c.want) {
			t.Errorf("%s: %s", c.name, text)
		}
	}
	if messageid.SchemaHeader(&kgo.Record{Headers: schema}, false) != "__value_schema_id" {
		t.Error("the header is not found")
	}
}
