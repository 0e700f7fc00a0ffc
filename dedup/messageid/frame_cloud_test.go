package messageid_test

import (
	"bytes"
	"compress/zlib"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
)

const glueProto = `syntax = "proto3"; package shop; message Zebra { string id = 1; } ` +
	`message Order { string note = 1; string id = 2; message Line { string id = 3; } }`

func uuid(t testing.TB, kind messageid.RefKind, text string) messageid.Ref {
	t.Helper()
	id, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return messageid.UUIDRef(kind, [16]byte(id))
}

// glueLibrary is what the service had when its serializers wrote the records of the test.
func glueLibrary(t testing.TB) library {
	return library{&shelf{}, map[messageid.Ref]messageid.Schema{
		uuid(t, messageid.RefGlue, "23dd487a9170421db19d9b1d29ce30ee"): {Type: "avro",
			Text: avroV1},
		uuid(t, messageid.RefGlue, "8a08fa85e19b4f3d8d279fcb27837692"): {Type: "avro",
			Text: strings.Replace(avroV2, `"int"`, `"string"`, 1)},
		uuid(t, messageid.RefGlue, "b8a05e0fc7404fb4b2ce828ef8eea99f"): {Type: "protobuf",
			Text: glueProto},
	}, messageid.Framing{Of: messageid.FramingGlue}}
}

// What software.amazon.glue:schema-registry-serde 1.1.25 wrote, with moto 5.2.5 in the place of the
// service: two versions, and the messages Zebra, Order and Order.Line; plain, and by zlib.
func TestSchemasOfGluesSerializersAreFound(t *testing.T) {
	l := glueLibrary(t)
	for from, records := range map[string][]string{
		"avro": {"030023dd487a9170421db19d9b1d29ce30ee06612d31",
			"03008a08fa85e19b4f3d8d279fcb27837692026e06612d31",
			"030523dd487a9170421db19d9b1d29ce30ee789c634bd435040001ca00c6",
			"03058a08fa85e19b4f3d8d279fcb27837692789c63ca634bd435040003fe0136"},
		"protobuf": {"0300b8a05e0fc7404fb4b2ce828ef8eea99f020a03612d31",
			"0300b8a05e0fc7404fb4b2ce828ef8eea99f001203612d31",
			"0300b8a05e0fc7404fb4b2ce828ef8eea99f011a03612d31",
			"0305b8a05e0fc7404fb4b2ce828ef8eea99f789c63e2624ed435040001fe00cf",
			"0305b8a05e0fc7404fb4b2ce828ef8eea99f789c6310624ed4350400021a00d5",
			"0305b8a05e0fc7404fb4b2ce828ef8eea99f789c6394624ed4350400024800de"},
		"json_schema": {"0300af4ac855676b47e2b9531bb3edc113107b226964223a22612d31227d",
			"0305af4ac855676b47e2b9531bb3edc11310789cab56ca4c51b2524ad43554aa050016430347"},
	} {
		for _, text := range records {
			value, err := hex.DecodeString(text)
			if err != nil {
				t.Fatal(err)
			}
			e := mustExtractor(t, messageid.Source{From: from, Path: "id", Registry: l})
			id, missing := extract(t, e, &kgo.Record{Value: value})
			if id != "a-1" || missing != 0 {
				t.Errorf("%s: %q, %v, %s", text, id, missing, e.Notice())
			}
			if from == "json_schema" {
				continue
			}
			hash := mustExtractor(t, messageid.Source{From: "value_hash", Format: from,
				Ignore: []string{"note"}, Registry: l})
			id, missing = extract(t, hash, &kgo.Record{Value: value})
			if missing != 0 || id == "" {
				t.Errorf("%s as a whole: %q, %v", text, id, missing)
			}
		}
	}
}

func TestWhatIsNoRecordOfTheRegistryIsNotRead(t *testing.T) {
	header := "\x03\x00\x23\xdd\x48\x7a\x91\x70\x42\x1d\xb1\x9d\x9b\x1d\x29\xce\x30\xee"
	packed := strings.Replace(header, "\x03\x00", "\x03\x05", 1)
	var bomb bytes.Buffer
	w := zlib.NewWriter(&bomb)
	for range 65 {
		if _, err := w.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	azure := library{&shelf{}, map[messageid.Ref]messageid.Schema{
		uuid(t, messageid.RefAzure, "23dd487a9170421db19d9b1d29ce30ee"): {Type: "avro",
			Text: avroV1},
	}, messageid.Framing{Of: messageid.FramingAzure}}
	content := "avro/binary+23dd487a9170421db19d9b1d29ce30ee"
	for _, c := range []struct {
		name    string
		of      library
		value   string
		headers []string
		want    dedup.ID
		missing dedup.MissingReason
	}{
		{"Confluent's frame", glueLibrary(t), "\x00\x00\x00\x00\x01\x06a-1", nil, "",
			dedup.MissingUnframed},
		{"Confluent's header", glueLibrary(t), header + "\x06a-1", []string{"__value_schema_id",
			"\x01abcdefghijklmnop"}, "a-1", 0},
		{"another version of Glue's header", glueLibrary(t), "\x04" + header[1:] + "\x06a-1", nil,
			"", dedup.MissingUnframed},
		{"another compression", glueLibrary(t), "\x03\x06" + header[2:] + "\x06a-1", nil, "",
			dedup.MissingUnframed},
		{"half a header", glueLibrary(t), header[:17], nil, "", dedup.MissingUnframed},
		{"another schema", glueLibrary(t), header[:17] + "x\x06a-1", nil, "",
			dedup.MissingUnknownSchema},
		{"no zlib", glueLibrary(t), packed + "\x06a-1", nil, "", dedup.MissingUnparsable},
		{"half of a zlib", glueLibrary(t), packed + bomb.String()[:90], nil, "",
			dedup.MissingUnparsable},
		{"what becomes 65 MiB", glueLibrary(t), packed + bomb.String(), nil, "",
			dedup.MissingUnparsable},
		{"Azure's header", azure, "\x06a-1", []string{"content-type", content}, "a-1", 0},
		{"the key's before the value's", azure, "\x06a-1", []string{"content-type",
			"avro/binary+00dd487a9170421db19d9b1d29ce30ee", "content-type", content}, "a-1", 0},
		{"another content", azure, "\x06a-1", []string{"content-type", content, "content-type",
			"application/json"}, "", dedup.MissingUnframed},
		{"no header", azure, "\x00\x00\x00\x00\x01\x06a-1", nil, "", dedup.MissingUnframed},
	} {
		e := mustExtractor(t, messageid.Source{From: "avro", Path: "id", Registry: c.of})
		r := &kgo.Record{Value: []byte(c.value), Headers: headers(c.headers...)}
		if id, missing := extract(t, e, r); id != c.want || missing != c.missing {
			t.Errorf("%s: %q, %v, want %q, %v", c.name, id, missing, c.want, c.missing)
		}
	}
}
