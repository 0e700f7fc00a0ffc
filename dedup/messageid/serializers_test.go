package messageid_test

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
)

// The records were written by the serializers of another implementation, and the schemas are as a
// registry gave them: those of Protobuf in base64, with their imports as references.
func TestIDsAreFoundInWhatSerializersWrite(t *testing.T) {
	data, err := os.ReadFile("testdata/serializers.json")
	if err != nil {
		t.Fatal(err)
	}
	var fixtures struct {
		Records []struct {
			Name, From, Schema, Record string
			References                 []messageid.Reference
			IDs                        map[string]string
		}
	}
	if err := json.Unmarshal(data, &fixtures); err != nil || len(fixtures.Records) < 4 {
		t.Fatal(err, len(fixtures.Records))
	}
	for _, f := range fixtures.Records {
		record, err := hex.DecodeString(f.Record)
		if err != nil {
			t.Fatal(err)
		}
		schemas := &shelf{schemas: map[uint32]messageid.Schema{
			binary.BigEndian.Uint32(record[1:]): {Type: f.From, Text: f.Schema,
				References: f.References}}}
		for path, want := range f.IDs {
			e := mustExtractor(t, messageid.Source{From: f.From, Path: path, Registry: schemas})
			id, missing := extract(t, e, &kgo.Record{Value: record})
			if string(id) != want || missing != dedup.NotMissing {
				t.Errorf("%s, %s: %q, %v, want %q; %s", f.Name, path, id, missing, want,
					e.Notice())
			}
		}
	}
}
