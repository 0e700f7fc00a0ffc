package avropath_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/twmb/avro"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid/avropath"
	"github.com/kdedup/kdedup/internal/jsonpath"
)

func parse(t testing.TB, path string) jsonpath.Path {
	t.Helper()
	paths, err := jsonpath.Parse(path)
	if err != nil {
		t.Fatal(err)
	}
	return paths[0]
}

func plan(t testing.TB, schema, path string) *avropath.Plan {
	t.Helper()
	p, err := avropath.Compile(schema, nil, parse(t, path))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func encode(t testing.TB, schema string, value any) []byte {
	t.Helper()
	data, err := avro.MustParse(schema).Encode(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// order has something of every type before the fields that are looked for.
const order = `{"type":"record","name":"Order","namespace":"shop","fields":[
 {"name":"nothing","type":"null"},
 {"name":"paid","type":"boolean"},
 {"name":"weight","type":"float"},
 {"name":"price","type":"double"},
 {"name":"note","type":"string"},
 {"name":"blob","type":"bytes"},
 {"name":"hash","type":{"type":"fixed","name":"Hash","size":16}},
 {"name":"state","type":{"type":"enum","name":"State","symbols":["NEW","PAID"]}},
 {"name":"tags","type":{"type":"array","items":"string"}},
 {"name":"numbers","type":{"type":"array","items":"double"}},
 {"name":"attributes","type":{"type":"map","values":{"type":"map","values":"long"}}},
 {"name":"maybe","type":["null","string"]},
 {"name":"other","type":["null","string"]},
 {"name":"either","type":["long",{"type":"record","name":"Ref","fields":[
   {"name":"id","type":"string"},{"name":"next","type":["null","Ref"]}]}]},
 {"name":"refs","type":{"type":"array","items":"shop.Ref"}},
 {"name":"count","type":"int"},
 {"name":"id","type":"long"},
 {"name":"at","type":{"type":"long","logicalType":"timestamp-millis"}},
 {"name":"uuid","type":{"type":"string","logicalType":"uuid"}}
]}`

func orderValue() map[string]any {
	ref := func(id string) map[string]any { return map[string]any{"id": id, "next": nil} }
	return map[string]any{
		"nothing": nil, "paid": true, "weight": float32(0.1), "price": 1e21,
		"note": strings.Repeat("n", 200), "blob": []byte{0, 1, 255}, "hash": make([]byte, 16),
		"state": "PAID", "tags": []any{"a", "b", "c"}, "numbers": []any{1.5, 2.0},
		"attributes": map[string]any{"x": map[string]any{"y": int64(-7)}},
		"maybe":      nil, "other": "o", "either": map[string]any{"id": "e",
			"next": ref("f")},
		"refs": []any{ref("r0"), ref("r1")}, "count": int32(-5), "id": int64(math.MaxInt64),
		"at": time.UnixMilli(1_700_000_000_000), "uuid": "0a12c11d-71fa-4a2d-a02e-350ec8fc9e34",
	}
}

func TestEveryTypeHasOneText(t *testing.T) {
	record := encode(t, order, orderValue())
	for path, want := range map[string]string{
		"note": strings.Repeat("n", 200), "blob": "\x00\x01\xff",
		"hash": string(make([]byte, 16)), "state": "PAID", "tags[2]": "c", "numbers[0]": "1.5",
		"numbers.1": "2", "attributes.x.y": "-7", "other": "o", "either.id": "e",
		"either.next.id": "f", "refs[1].id": "r1", "count": "-5", "id": "9223372036854775807",
		"at": "1700000000000", "uuid": "0a12c11d-71fa-4a2d-a02e-350ec8fc9e34", "weight": "0.1",
		"price": "1000000000000000000000",
	} {
		got, missing := plan(t, order, path).Find(record)
		if string(got) != want || missing != dedup.NotMissing {
			t.Errorf("%s: %q, %v, want %q", path, got, missing, want)
		}
	}
	for path, want := range map[string]dedup.MissingReason{
		"maybe": dedup.MissingNull, "nothing": dedup.MissingNull, "tags[3]": dedup.MissingAbsent,
		"attributes.x.z": dedup.MissingAbsent, "attributes.z.y": dedup.MissingAbsent,
		"refs[0].next.id": dedup.MissingAbsent, "either": dedup.MissingUnsupportedType,
	} {
		if got, missing := plan(t, order, path).Find(record); missing != want {
			t.Errorf("%s: %q, %v, want %v", path, got, missing, want)
		}
	}
}

func TestLogicalTypesOfBytesHaveATextOfTheirOwn(t *testing.T) {
	for _, c := range []struct{ schema, value, want string }{
		{`{"type":"fixed","name":"U","size":16,"logicalType":"uuid"}`,
			"\x0a\x12\xc1\x1d\x71\xfa\x4a\x2d\xa0\x2e\x35\x0e\xc8\xfc\x9e\x34",
			"0a12c11d-71fa-4a2d-a02e-350ec8fc9e34"},
		{`{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}`, "\x04\x04\xce",
			"12.30"},
		{`{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}`, "\x08\x00\x00\x04\xce",
			"12.30"},
		{`{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}`, "\x02\xff", "-0.01"},
		{`{"type":"bytes","logicalType":"decimal","precision":9}`, "\x02\x80", "-128"},
		{`{"type":"fixed","name":"D","size":2,"logicalType":"decimal","precision":3,"scale":3}`,
			"\x00\x05", "0.005"},
	} {
		schema := `{"type":"record","name":"R","fields":[{"name":"id","type":` + c.schema + `}]}`
		got, missing := plan(t, schema, "id").Find([]byte(c.value))
		if string(got) != c.want || missing != dedup.NotMissing {
			t.Errorf("%s of %x: %q, %v, want %s", c.schema, c.value, got, missing, c.want)
		}
	}
}

// A decimal is compared with math/big at random lengths.
func FuzzDecimal(f *testing.F) {
	f.Add([]byte{0x04, 0xce})
	f.Add([]byte{0x80, 0, 0, 0, 0, 0, 0, 0, 0})
	schema := `{"type":"record","name":"R","fields":[{"name":"id","type":{"type":"bytes",` +
		`"logicalType":"decimal","precision":99,"scale":4}}]}`
	p := plan(f, schema, "id")
	f.Fuzz(func(t *testing.T, value []byte) {
		if len(value) == 0 || len(value) > 200 {
			return
		}
		got, missing := p.Find(append(binary.AppendVarint(nil, int64(len(value))), value...))
		n := new(big.Int).SetBytes(value)
		if value[0] >= 0x80 {
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(value))))
		}
		want := new(big.Rat).SetFrac(n, big.NewInt(10000)).FloatString(4)
		if n.Sign() == 0 {
			want = "0.0000"
		}
		if string(got) != want || missing != dedup.NotMissing {
			t.Fatalf("%x: %s, %v, want %s", value, got, missing, want)
		}
	})
}

func TestAPathThatTheSchemaCannotHaveIsRefused(t *testing.T) {
	for path, want := range map[string]struct {
		is   error
		text string
	}{
		"nope":      {avropath.ErrNoField, "record Order has no field nope"},
		"note.x":    {avropath.ErrNoField, "before note.x stands a string"},
		"tags.x":    {avropath.ErrNoField, "before tags.x stands an array"},
		"tags":      {avropath.ErrNoID, "tags is an array"},
		"paid":      {avropath.ErrNoID, "paid is a boolean"},
		"refs[0]":   {avropath.ErrNoID, "refs.0 is a record"},
		"maybe.x":   {avropath.ErrNoField, "before maybe.x stands a string"},
		"either.no": {avropath.ErrNoField, ""},
	} {
		_, err := avropath.Compile(order, nil, parse(t, path))
		if !errors.Is(err, want.is) || !strings.Contains(err.Error(), want.text) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := avropath.Compile(`{"type":"recor`, nil, parse(t, "a")); err == nil {
		t.Error("what is no schema is accepted")
	}
}

func TestReferencesAreSchemasOfTheirOwn(t *testing.T) {
	p, err := avropath.Compile(`{"type":"record","name":"O","fields":[{"name":"c","type":"x.C"}]}`,
		[]string{`{"type":"record","name":"C","namespace":"x","fields":[` +
			`{"name":"id","type":"string"}]}`}, parse(t, "c.id"))
	if err != nil {
		t.Fatal(err)
	}
	if got, missing := p.Find([]byte("\x02a")); string(got) != "a" {
		t.Errorf("%q, %v", got, missing)
	}
}

// What is cut off up to the field has no ID; what is cut off behind it has the same one.
func TestACutRecordHasItsIDOrNone(t *testing.T) {
	record := encode(t, order, orderValue())
	for _, path := range []string{"note", "refs[1].id", "id", "attributes.x.y", "at"} {
		p := plan(t, order, path)
		want, _ := p.Find(record)
		whole := false
		for end := range record {
			got, missing := p.Find(record[:end])
			switch {
			case missing == dedup.NotMissing && !bytes.Equal(got, want):
				t.Fatalf("%s: cut at %d it is %q, not %q", path, end, got, want)
			case missing == dedup.NotMissing:
				whole = true
			case missing != dedup.MissingUnparsable || whole:
				t.Fatalf("%s: cut at %d: %v", path, end, missing)
			}
		}
	}
}

func TestHostileRecordsCostLittle(t *testing.T) {
	many := binary.AppendVarint(nil, math.MaxInt64)
	for name, c := range map[string]struct {
		schema string
		record []byte
	}{
		"elements of no bytes": {`{"type":"array","items":"null"}`, many},
		"elements of empty records": {`{"type":"array","items":{"type":"record","name":"E",` +
			`"fields":[]}}`, many},
		"more elements than bytes": {`{"type":"array","items":"long"}`, many},
		"more doubles than bytes":  {`{"type":"array","items":"double"}`, many},
		"a size and nothing":       {`{"type":"array","items":"long"}`, []byte{1, 1}},
		"the least count": {`{"type":"array","items":"long"}`,
			binary.AppendVarint(nil, math.MinInt64)},
		"a long text":     {`"string"`, many},
		"a negative text": {`"string"`, []byte{1}},
		"no branch":       {`["null","long"]`, []byte{8}},
		"a list without an end": {`{"type":"record","name":"L","fields":[` +
			`{"name":"next","type":["null","L"]}]}`, bytes.Repeat([]byte{2}, 1<<20)},
	} {
		schema := `{"type":"record","name":"R","fields":[{"name":"x","type":` + c.schema +
			`},{"name":"id","type":"string"}]}`
		begin := time.Now()
		if got, missing := plan(t, schema, "id").Find(c.record); missing !=
			dedup.MissingUnparsable {
			t.Errorf("%s: %q, %v", name, got, missing)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%s: %v", name, took)
		}
	}
}

// FuzzFind compares with the decoder of the library: an ID that is found is the one that it
// decodes, if it can decode the record.
func FuzzFind(f *testing.F) {
	f.Add(encode(f, order, orderValue()))
	f.Add([]byte{})
	schema := avro.MustParse(order)
	p, other := plan(f, order, "refs[1].id"), plan(f, order, "other")
	f.Fuzz(func(t *testing.T, record []byte) {
		got, missing := p.Find(record)
		text, none := other.Find(record)
		var value map[string]any
		if _, err := schema.Decode(record, &value); err != nil {
			return
		}
		refs, _ := value["refs"].([]any)
		if len(refs) > 1 {
			want, _ := refs[1].(map[string]any)["id"].(string)
			if string(got) != want || (missing == dedup.MissingEmpty) != (want == "") {
				t.Fatalf("got %q, %v, want %q", got, missing, want)
			}
		} else if missing != dedup.MissingAbsent {
			t.Fatalf("got %q, %v of %d", got, missing, len(refs))
		}
		if want, is := value["other"].(string); is && string(text) != want ||
			!is && none != dedup.MissingNull {
			t.Fatalf("got %q, %v, want %q", text, none, want)
		}
	})
}

// BenchmarkFind takes an ID out of a record of 1 KiB, behind most of it.
func BenchmarkFind(b *testing.B) {
	value := orderValue()
	value["note"] = strings.Repeat("n", 800)
	record := encode(b, order, value)
	for _, path := range []string{"uuid", "id"} {
		b.Run(path, func(b *testing.B) {
			p := plan(b, order, path)
			b.SetBytes(int64(len(record)))
			b.ReportAllocs()
			for b.Loop() {
				if _, missing := p.Find(record); missing != dedup.NotMissing {
					b.Fatal(missing)
				}
			}
		})
	}
}
