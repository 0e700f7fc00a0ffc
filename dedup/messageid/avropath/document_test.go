package avropath_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/twmb/avro"

	"github.com/kdedup/kdedup/dedup/messageid/avropath"
)

func documents(t testing.TB, schema string, references ...string) *avropath.Documents {
	t.Helper()
	d, err := avropath.CompileDocuments(schema, references)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func document(t testing.TB, schema string, record []byte) string {
	t.Helper()
	doc, ok := documents(t, schema).AppendJSON([]byte("before"), record)
	if !ok {
		t.Fatalf("%x is no record of %s", record, schema)
	}
	return strings.TrimPrefix(string(doc), "before")
}

func TestARecordIsADocument(t *testing.T) {
	value := orderValue()
	value["note"], value["hash"] = "a\"\\\n\x1f\xff", []byte("0123456789abcdef")
	got := document(t, order, encode(t, order, value))
	want := `{"paid":true,"weight":0.1,"price":1000000000000000000000,` +
		`"note":"a\"\\\u000a\u001f` + "\xff" + `","blob":"\u0000\u0001` + "\xff" +
		`","hash":"0123456789abcdef","state":"PAID","tags":["a","b","c"],"numbers":[1.5,2],` +
		`"attributes":{"x":{"y":-7}},"other":"o","either":{"id":"e","next":{"id":"f"}},` +
		`"refs":[{"id":"r0"},{"id":"r1"}],"count":-5,"id":9223372036854775807,` +
		`"at":1700000000000,"uuid":"0a12c11d-71fa-4a2d-a02e-350ec8fc9e34"}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestADocumentTellsWhatABranchIs(t *testing.T) {
	const events = `["null",{"type":"record","name":"Made","fields":[{"name":"id","type":"int"}]},` +
		`{"type":"record","name":"Gone","namespace":"x","fields":[{"name":"id","type":"int"}]}]`
	for record, want := range map[string]string{
		"\x00": `null`, "\x02\x02": `{"":"Made","id":1}`, "\x04\x02": `{"":"x.Gone","id":1}`,
	} {
		if got := document(t, events, []byte(record)); got != want {
			t.Errorf("%x: %s, want %s", record, got, want)
		}
	}
	if got := document(t, `{"type":"array","items":["null","int"]}`,
		[]byte("\x04\x00\x02\x04\x00")); got != `[null,2]` {
		t.Errorf("elements that are null: %s", got)
	}
	if got := document(t, `"double"`,
		binary.LittleEndian.AppendUint64(nil, math.Float64bits(math.NaN()))); got[0] != '"' {
		t.Errorf("what is no number: %s", got)
	}
}

func TestWhatIsNoRecordIsNoDocument(t *testing.T) {
	record := encode(t, order, orderValue())
	d := documents(t, order)
	for end := range record {
		if doc, ok := d.AppendJSON(nil, record[:end]); ok || len(doc) > 0 {
			t.Fatalf("cut at %d it is %s", end, doc)
		}
	}
	if _, ok := d.AppendJSON(nil, append(record, 0)); ok {
		t.Error("a byte more, and it is a record")
	}
	if _, err := avropath.CompileDocuments(`{"type":"recor`, nil); err == nil {
		t.Error("what is no schema is accepted")
	}
}

func TestHostileDocumentsCostLittle(t *testing.T) {
	many := binary.AppendVarint(nil, math.MaxInt64)
	for name, c := range map[string]struct {
		schema string
		record []byte
	}{
		"elements of no bytes": {`{"type":"array","items":"null"}`, many},
		"elements of empty records": {`{"type":"array","items":{"type":"record","name":"E",` +
			`"fields":[]}}`, many},
		"more elements than bytes": {`{"type":"array","items":"long"}`, many},
		"a list without an end": {`{"type":"record","name":"L","fields":[` +
			`{"name":"next","type":["null","L"]}]}`, bytes.Repeat([]byte{2}, 1<<20)},
		"long names of few bytes": {`{"type":"array","items":{"type":"record","name":"E",` +
			`"fields":[{"name":"` + strings.Repeat("n", 1000) + `","type":"boolean"}]}}`,
			append(binary.AppendVarint(nil, 1<<20), make([]byte, 1<<20)...)},
	} {
		begin := time.Now()
		doc, ok := documents(t, c.schema).AppendJSON(nil, c.record)
		if ok || len(doc) > 0 {
			t.Errorf("%s: a document of %d bytes", name, len(doc))
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%s: %v", name, took)
		}
	}
}

// FuzzDocument compares with the decoder of the library: what it decodes is a document, and says
// the same.
func FuzzDocument(f *testing.F) {
	f.Add(encode(f, order, orderValue()))
	f.Add([]byte{})
	schema, d := avro.MustParse(order), documents(f, order)
	f.Fuzz(func(t *testing.T, record []byte) {
		doc, ok := d.AppendJSON(nil, record)
		if len(doc) > 1<<20+33*len(record)+1<<10 {
			t.Fatalf("%d bytes became %d", len(record), len(doc))
		}
		var value struct {
			Note   string  `avro:"note" json:"note"`
			Count  int32   `avro:"count" json:"count"`
			ID     int64   `avro:"id" json:"id"`
			State  string  `avro:"state" json:"state"`
			Weight float32 `avro:"weight" json:"-"`
		}
		var all any
		rest, err := schema.Decode(record, &all)
		if err != nil || len(rest) > 0 {
			return
		}
		if _, err := schema.Decode(record, &value); err != nil {
			return
		}
		if !ok {
			t.Fatalf("%x is a record, and no document", record)
		}
		again := value
		again.Note, again.Count, again.ID, again.State = "", 0, 0, ""
		if !utf8.Valid(doc) {
			return // encoding/json changes what is not
		}
		if err := json.Unmarshal(doc, &again); err != nil {
			t.Fatalf("%s: %v", doc, err)
		}
		if again != value && value.Weight == value.Weight {
			t.Fatalf("%s: %+v, want %+v", doc, again, value)
		}
	})
}

func BenchmarkDocument(b *testing.B) {
	value := orderValue()
	value["note"] = strings.Repeat("n", 800)
	record, d := encode(b, order, value), documents(b, order)
	b.SetBytes(int64(len(record)))
	b.ReportAllocs()
	var doc []byte
	for b.Loop() {
		var ok bool
		if doc, ok = d.AppendJSON(doc[:0], record); !ok {
			b.Fatal("no document")
		}
	}
}
