package messageid_test

import (
	"bytes"
	"compress/zlib"
	"encoding/hex"
	"encoding/json"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
)

// mostForOne bounds what a look at one record allocates in all, which may be a bomb of zlib: what
// is unpacked, at most 64 MiB, what it grew out of, and copies of it. The race detector makes more
// of them.
const mostForOne = 1 << 30

// readsOnce wants an ID or a reason of a record, the same one again, and no more memory than that.
func readsOnce(t *testing.T, e *messageid.Extractor, r *kgo.Record) {
	t.Helper()
	var before, after runtime.MemStats
	key, value := bytes.Clone(r.Key), bytes.Clone(r.Value)
	runtime.ReadMemStats(&before)
	id, missing := extract(t, e, r)
	runtime.ReadMemStats(&after)
	again, reason := e.Extract(r)
	switch {
	case missing == dedup.MissingUnresolved:
		t.Fatalf("%s: it stays open whether there is an ID", e)
	case id != again || missing != reason || (id == "") != (missing != dedup.NotMissing):
		t.Fatalf("%s: %q, %v; then %q, %v", e, id, missing, again, reason)
	case !bytes.Equal(key, r.Key) || !bytes.Equal(value, r.Value):
		t.Fatalf("%s changed the record", e)
	case after.TotalAlloc-before.TotalAlloc > mostForOne:
		t.Fatalf("%s: it took %d MiB", e, (after.TotalAlloc-before.TotalAlloc)>>20)
	}
}

// serialized are the bytes of the records that serializers made, without what stands before them.
func serialized(f *testing.F) (all [][]byte) {
	f.Helper()
	data, err := os.ReadFile("testdata/serializers.json")
	if err != nil {
		f.Fatal(err)
	}
	var fixtures struct{ Records []struct{ Record string } }
	if err := json.Unmarshal(data, &fixtures); err != nil {
		f.Fatal(err)
	}
	for _, r := range fixtures.Records {
		record, err := hex.DecodeString(r.Record)
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, record)
	}
	return all
}

// FuzzFraming: whatever headers name, and whatever stands before a value or a key.
func FuzzFraming(f *testing.F) {
	confluent := []byte("\x01\x22\x6a\xbe\x10\x61\x0e\x4e\x82\xaf\xd7\x49\xda\x3e\x52\x2a\x0e")
	f.Add(confluent, []byte("\x02n\x06a-1"), uint8(0), uint8(0))
	f.Add(append(bytes.Clone(confluent), 2, 4), []byte("\x0a\x01a"), uint8(0), uint8(1))
	f.Add([]byte("\x00\x00\x00\x00\x04\x00"), []byte("\xC3\x01abcdefgh"), uint8(3), uint8(0))
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x65"), []byte("\x00\x00\x00\x00\x65\x02a"),
		uint8(21), uint8(2))
	f.Add([]byte("\x00\x00\x01\x00\x00\x00\x00\x01"), []byte("\x02a"), uint8(40), uint8(3))
	f.Add([]byte("JSON"), []byte(`{"id":"a"}`), uint8(0), uint8(4))
	f.Add([]byte("avro/binary+23dd487a9170421db19d9b1d29ce30ee"), []byte("\x06a-1"), uint8(64),
		uint8(5))
	for _, record := range serialized(f) {
		f.Add(record[:5], record[5:], uint8(0), uint8(0))
		f.Add([]byte{}, record, uint8(1), uint8(0))
	}
	places := []string{messageid.InAny, messageid.InValue, messageid.InHeader}
	numbers := []messageid.RefKind{messageid.RefID, messageid.RefContentID, messageid.RefGlobalID}
	names := []string{"__value_schema_id", "__key_schema_id", "apicurio.value.contentId",
		"apicurio.value.globalId", "apicurio.value.encoding", "content-type",
		"apicurio.key.contentId"}
	f.Fuzz(func(t *testing.T, header, part []byte, kind, name uint8) {
		framing := messageid.Framing{In: places[kind%3], Long: kind&8 != 0,
			Numbers: numbers[int(kind>>4)%len(numbers)]}
		if kind&64 != 0 {
			framing = messageid.Framing{Of: messageid.FramingAzure}
		}
		l := libraryOf(framing)
		r := &kgo.Record{Key: part, Value: part,
			Headers: headers("a", "b", names[int(name)%len(names)], string(header))}
		for _, from := range []string{"avro", "protobuf", "json_schema"} {
			for _, of := range []string{"value", "key"} {
				readsOnce(t, mustExtractor(t, messageid.Source{From: from, Path: "id", Part: of,
					Registry: l}), r)
			}
		}
		readsOnce(t, mustExtractor(t, messageid.Source{From: "value_hash", Format: "avro",
			Ignore: []string{"n"}, Registry: l}), r)
		messageid.SchemaHeader(r, kind&1 != 0)
		messageid.IsAzure(r)
	})
}

// allOfGlue take IDs out of what Glue's serializers write, in each way.
func allOfGlue(t testing.TB) (all []*messageid.Extractor) {
	t.Helper()
	l := glueLibrary(t)
	for _, s := range []messageid.Source{
		{From: "avro", Path: "id"},
		{From: "protobuf", Path: "id"},
		{From: "json_schema", Path: "id"},
		{From: "avro", Path: "id", Part: "key"},
		{From: "value_hash", Format: "avro", Ignore: []string{"note"}},
		{From: "value_hash", Format: "protobuf", Ignore: []string{"note"}},
	} {
		s.Registry = l
		all = append(all, mustExtractor(t, s))
	}
	return all
}

// A record of a megabyte could be a gigabyte by zlib.
func TestABombOfZlibComesToBoundedMemory(t *testing.T) {
	bomb := packed(t, strings.Repeat("\x00", 1<<20), 400)
	for _, schema := range []string{"23dd487a9170421db19d9b1d29ce30ee",
		"b8a05e0fc7404fb4b2ce828ef8eea99f"} {
		value, err := hex.DecodeString("0305" + schema)
		if err != nil {
			t.Fatal(err)
		}
		value = append(value, bomb...)
		for _, e := range allOfGlue(t) {
			readsOnce(t, e, &kgo.Record{Key: value, Value: value})
		}
	}
}

// packed is what zlib makes of some text, repeated.
func packed(t testing.TB, text string, times int) []byte {
	t.Helper()
	var to bytes.Buffer
	w := zlib.NewWriter(&to)
	for range times {
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return to.Bytes()
}

// FuzzGlue: whatever a header of Glue's is followed by, also what grows a thousandfold by zlib.
func FuzzGlue(f *testing.F) {
	for _, text := range []string{
		"030023dd487a9170421db19d9b1d29ce30ee06612d31",
		"030523dd487a9170421db19d9b1d29ce30ee789c634bd435040001ca00c6",
		"03058a08fa85e19b4f3d8d279fcb27837692789c63ca634bd435040003fe0136",
		"0300b8a05e0fc7404fb4b2ce828ef8eea99f011a03612d31",
		"0305b8a05e0fc7404fb4b2ce828ef8eea99f789c6394624ed4350400024800de",
		"0305af4ac855676b47e2b9531bb3edc11310789cab56ca4c51b2524ad43554aa050016430347",
	} {
		value, err := hex.DecodeString(text)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(value)
		if value[1] == 5 {
			f.Add(append(bytes.Clone(value[:18]), packed(f, "\x06a-1", 1<<12)...))
		}
	}
	all := allOfGlue(f)
	f.Fuzz(func(t *testing.T, value []byte) {
		for _, e := range all {
			readsOnce(t, e, &kgo.Record{Key: value, Value: value})
		}
	})
}
