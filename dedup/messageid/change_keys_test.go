package messageid_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
)

// frames is a registry of which only the framing matters.
type frames messageid.Framing

func (frames) Schema(context.Context, uint32) (messageid.Schema, error) {
	return messageid.Schema{}, messageid.ErrUnknownSchema
}
func (f frames) Framing() messageid.Framing { return messageid.Framing(f) }

// The schema of a key may get another version while the change that it names is read again.
func TestAChangeIsTheSameUnderEachVersionOfItsKeysSchema(t *testing.T) {
	const key = "\x06ann"
	packed := func(text string) string {
		var out bytes.Buffer
		to := zlib.NewWriter(&out)
		if _, err := to.Write([]byte(text)); err != nil || to.Close() != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	uuid := func(of byte) string { return strings.Repeat(string(rune(of)), 16) }
	inHeader := func(name, value string) []kgo.RecordHeader {
		return []kgo.RecordHeader{{Key: name, Value: []byte(value)}}
	}
	for name, c := range map[string]struct {
		framing    messageid.Framing
		keys       [2]string // of the same key
		headers    [2][]kgo.RecordHeader
		anotherKey string
	}{
		"numbers of four bytes": {messageid.Framing{},
			[2]string{"\x00\x00\x00\x00\x01" + key, "\x00\x00\x00\x00\x02" + key},
			[2][]kgo.RecordHeader{}, "\x00\x00\x00\x00\x01\x06bob"},
		"numbers of eight bytes": {messageid.Framing{Numbers: messageid.RefGlobalID, Long: true},
			[2]string{"\x00\x00\x00\x00\x00\x00\x00\x00\x01" + key,
				"\x00\x00\x00\x00\x00\x00\x00\x00\x02" + key},
			[2][]kgo.RecordHeader{}, "\x00\x00\x00\x00\x00\x00\x00\x00\x01\x06bob"},
		"AWS Glue, plain and packed": {messageid.Framing{Of: messageid.FramingGlue},
			[2]string{"\x03\x00" + uuid(1) + key, "\x03\x05" + uuid(2) + packed(key)},
			[2][]kgo.RecordHeader{}, "\x03\x00" + uuid(1) + "\x06bob"},
		"single objects": {messageid.Framing{},
			[2]string{"\xC3\x01\x01\x02\x03\x04\x05\x06\x07\x08" + key,
				"\xC3\x01\x11\x12\x13\x14\x15\x16\x17\x18" + key},
			[2][]kgo.RecordHeader{}, "\xC3\x01\x01\x02\x03\x04\x05\x06\x07\x08\x06bob"},
		"a header, and before the key": {messageid.Framing{},
			[2]string{key, "\x00\x00\x00\x00\x02" + key},
			[2][]kgo.RecordHeader{inHeader("__key_schema_id", "\x01"+uuid(1))},
			"\x00\x00\x00\x00\x02\x06bob"},
		"a header, and a key that begins as if it had a number": {messageid.Framing{},
			[2]string{"\x00\x00\x00\x00\x02" + key, "\x00\x00\x00\x00\x02" + key},
			[2][]kgo.RecordHeader{inHeader("__key_schema_id", "\x01"+uuid(1)),
				inHeader("__key_schema_id", "\x01"+uuid(2))}, key},
	} {
		for from, value := range map[string]string{
			messageid.FromDebezium: string(sent{op: "c", after: `{"n":1}`,
				source: []string{`"connector":"postgresql"`, `"lsn":7`}}.record().Value),
			messageid.FromCockroachDB: forms["cockroachdb"](rowChange{id: 1, to: 2, at: 3}),
		} {
			t.Run(name+" "+from, func(t *testing.T) {
				e := mustExtractor(t, messageid.Source{From: from, Registry: frames(c.framing)})
				id := func(key string, headers []kgo.RecordHeader) dedup.ID {
					return changeID(t, e, &kgo.Record{Key: []byte(key), Headers: headers,
						Value: []byte(value)})
				}
				first := id(c.keys[0], c.headers[0])
				if again := id(c.keys[1], c.headers[1]); again != first {
					t.Errorf("%q and %q are two changes", c.keys[0], c.keys[1])
				}
				if another := id(c.anotherKey, nil); another == first {
					t.Errorf("%q and %q are one change", c.keys[0], c.anotherKey)
				}
			})
		}
	}
}
