package dedup_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
)

func mustExtractor(t testing.TB, s dedup.Source) *dedup.Extractor {
	t.Helper()
	e, err := dedup.NewExtractor(s)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func headers(pairs ...string) []kgo.RecordHeader {
	var all []kgo.RecordHeader
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, kgo.RecordHeader{Key: pairs[i], Value: []byte(pairs[i+1])})
	}
	return all
}

func TestIDComesFromItsSource(t *testing.T) {
	sum := sha256.Sum256([]byte("value"))
	long := strings.Repeat("x", dedup.MaxIDBytes+1)
	longSum := sha256.Sum256([]byte(long))
	cases := []struct {
		name    string
		source  dedup.Source
		record  kgo.Record
		want    string
		missing dedup.MissingReason
	}{
		{"header", dedup.Source{From: "header", Name: "id"},
			kgo.Record{Headers: headers("a", "1", "id", "2")}, "2", 0},
		{"header: the first of several counts", dedup.Source{From: "header", Name: "id"},
			kgo.Record{Headers: headers("id", "1", "id", "2")}, "1", 0},
		{"header: names are case-sensitive", dedup.Source{From: "header", Name: "id"},
			kgo.Record{Headers: headers("ID", "1")}, "", dedup.MissingAbsent},
		{"header: null", dedup.Source{From: "header", Name: "id"},
			kgo.Record{Headers: []kgo.RecordHeader{{Key: "id"}}}, "", dedup.MissingNull},
		{"header: empty", dedup.Source{From: "header", Name: "id"},
			kgo.Record{Headers: headers("id", "")}, "", dedup.MissingEmpty},
		{"key: any bytes", dedup.Source{From: "key"}, kgo.Record{Key: []byte{0, 0xff}}, "\x00\xff",
			0},
		{"key: null", dedup.Source{From: "key"}, kgo.Record{}, "", dedup.MissingNull},
		{"key: empty", dedup.Source{From: "key"}, kgo.Record{Key: []byte{}}, "",
			dedup.MissingEmpty},
		{"key: 4 KiB stay", dedup.Source{From: "key"}, kgo.Record{Key: []byte(long[1:])}, long[1:],
			0},
		{"key: longer is hashed", dedup.Source{From: "key"}, kgo.Record{Key: []byte(long)},
			"sha256:" + string(longSum[:]), 0},
		{"value_hash", dedup.Source{From: "value_hash"}, kgo.Record{Value: []byte("value")},
			string(sum[:]), 0},
		{"value_hash: tombstone", dedup.Source{From: "value_hash"}, kgo.Record{}, "",
			dedup.MissingNull},
		{
			"composite", dedup.Source{From: "composite",
				Parts: []dedup.Source{{From: "header", Name: "shop"}, {From: "key"}}},
			kgo.Record{Key: []byte("bc"), Headers: headers("shop", "a")}, "\x01a\x02bc", 0,
		},
		{
			"composite: one missing part", dedup.Source{From: "composite",
				Parts: []dedup.Source{{From: "header", Name: "shop"}, {From: "key"}}},
			kgo.Record{Key: []byte("bc")}, "", dedup.MissingAbsent,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			id, missing := mustExtractor(t, c.source).Extract(&c.record)
			if string(id) != c.want || missing != c.missing {
				t.Errorf("got %q, %v; want %q, %v", id, missing, c.want, c.missing)
			}
		})
	}
}

func TestCompositeIsUnambiguous(t *testing.T) {
	e := mustExtractor(t, dedup.Source{From: "composite",
		Parts: []dedup.Source{{From: "header", Name: "h"}, {From: "key"}}})
	one, _ := e.Extract(&kgo.Record{Key: []byte("bc"), Headers: headers("h", "a|")})
	two, _ := e.Extract(&kgo.Record{Key: []byte("|bc"), Headers: headers("h", "a")})
	if one == two {
		t.Errorf("both are %q", one)
	}
}

func TestJSONField(t *testing.T) {
	cases := []struct {
		name, path, doc string
		want            string
		missing         dedup.MissingReason
	}{
		{"string", "id", `{"id":"a"}`, "a", 0},
		{"nested", "order.id", `{"id":1,"order":{"x":{"id":2},"id":"b"}}`, "b", 0},
		{"array index", "items.1.id", `{"items":[{"id":1},{"id":2}]}`, "2", 0},
		{"an index is also a name", "1", `{"1":"x"}`, "x", 0},
		{"dot in a name", `a\.b`, `{"a":{"b":1},"a.b":2}`, "2", 0},
		{"backslash in a name", `a\\b`, `{"a\\b":2}`, "2", 0},
		{"numbers stay as written", "id", `{"id":12345678901234567890.10}`,
			"12345678901234567890.10", 0},
		{"exponents stay as written", "id", `{"id":-1E+2}`, "-1E+2", 0},
		{"escapes are resolved", "id", `{"id":"\u0061\n\ud83d\ude00"}`, "a\n😀", 0},
		{"escaped names match", "id", `{"\u0069d":"a"}`, "a", 0},
		{"half a surrogate pair stays what it is", "id", `{"id":"\ud83d"}`, "\xed\xa0\xbd", 0},
		{"the last of equal names counts", "id", `{"id":1,"id":2}`, "2", 0},
		{"null", "id", `{"id":null}`, "", dedup.MissingNull},
		{"empty string", "id", `{"id":""}`, "", dedup.MissingEmpty},
		{"absent", "id", `{"ID":1}`, "", dedup.MissingAbsent},
		{"absent below a scalar", "id.x", `{"id":1}`, "", dedup.MissingAbsent},
		{"object", "id", `{"id":{}}`, "", dedup.MissingUnsupportedType},
		{"array", "id", `{"id":[1]}`, "", dedup.MissingUnsupportedType},
		{"boolean", "id", `{"id":true}`, "", dedup.MissingUnsupportedType},
		{"rubbish behind the field", "id", `{"id":1}}`, "", dedup.MissingUnparsable},
		{"cut off", "id", `{"id":1`, "", dedup.MissingUnparsable},
		{"trailing comma", "id", `{"id":1,}`, "", dedup.MissingUnparsable},
		{"leading zero", "id", `{"id":01}`, "", dedup.MissingUnparsable},
		{"control character in a string", "id", "{\"id\":\"a\nb\"}", "", dedup.MissingUnparsable},
		{"too deep", "id", strings.Repeat("[", 10001) + strings.Repeat("]", 10001), "",
			dedup.MissingUnparsable},
		{"empty value", "id", ``, "", dedup.MissingEmpty},
		{"white space everywhere", "a.b", " {\t\"a\" :\r\n{ \"b\" : \"x\" } } ", "x", 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := mustExtractor(t, dedup.Source{From: "json", Path: c.path})
			id, missing := e.Extract(&kgo.Record{Value: []byte(c.doc)})
			if string(id) != c.want || missing != c.missing {
				t.Errorf("got %q, %v; want %q, %v", id, missing, c.want, c.missing)
			}
		})
	}
	t.Run("tombstone", func(t *testing.T) {
		e := mustExtractor(t, dedup.Source{From: "json", Path: "id"})
		if _, missing := e.Extract(&kgo.Record{}); missing != dedup.MissingNull {
			t.Errorf("got %v", missing)
		}
	})
}

func TestBadSourcesAreRefused(t *testing.T) {
	cases := map[string]dedup.Source{
		`message_id: from "cookie" is not header, key, json, value_hash or composite`: {
			From: "cookie"},
		`message_id: from header needs a name`:         {From: "header"},
		`message_id: path "a..b" has an empty segment`: {From: "json", Path: "a..b"},
		`message_id: path "" has an empty segment`:     {From: "json"},
		`message_id: composite needs at least two parts`: {From: "composite",
			Parts: []dedup.Source{{From: "key"}}},
		`message_id: composite: from header needs a name`: {From: "composite",
			Parts: []dedup.Source{{From: "key"}, {From: "header"}}},
	}
	for want, source := range cases {
		if _, err := dedup.NewExtractor(source); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// The name of an extractor is stored with its scope: two sources that make IDs differently must
// not share a name.
func TestExtractorNamesDiffer(t *testing.T) {
	sources := []dedup.Source{
		{From: "key"},
		{From: "value_hash"},
		{From: "header", Name: "key"},
		{From: "header", Name: `a",header:"b`},
		{From: "json", Path: "key"},
		{From: "composite", Parts: []dedup.Source{{From: "key"}, {From: "value_hash"}}},
		{From: "composite", Parts: []dedup.Source{{From: "value_hash"}, {From: "key"}}},
		{From: "composite", Parts: []dedup.Source{{From: "header", Name: "a"},
			{From: "header", Name: "b"}}},
	}
	seen := map[string]bool{}
	for _, s := range sources {
		name := mustExtractor(t, s).String()
		if seen[name] {
			t.Errorf("%s names two sources", name)
		}
		seen[name] = true
	}
}

// FuzzJSONField compares with encoding/json: the same documents are valid, and a string or number
// is found exactly where it finds one.
func FuzzJSONField(f *testing.F) {
	for _, doc := range []string{
		`{"id":"a"}`, `{"id":1.50}`, `{"id":{"id":2}}`, `[{"id":3}]`, `{"id":"\u00e9\ud800"}`,
		`{"i\u0064":"x","id":null}`, `{"id":tru}`, "{\"id\":\"\xff\"}", `{"id":-0e1}`,
		` {"id" : [ ] }`,
	} {
		f.Add([]byte(doc))
	}
	e := mustExtractor(f, dedup.Source{From: "json", Path: "id"})
	f.Fuzz(func(t *testing.T, doc []byte) {
		id, missing := e.Extract(&kgo.Record{Value: bytes.Clone(doc)})
		if valid := json.Valid(doc); valid == (missing == dedup.MissingUnparsable) && len(doc) > 0 {
			t.Fatalf("valid %v, but %v", valid, missing)
		}
		var object map[string]json.RawMessage
		if json.Unmarshal(doc, &object) != nil || missing != dedup.NotMissing {
			return
		}
		// encoding/json puts U+FFFD in place of what is not UTF-8, in names as well.
		if raw := bytes.TrimSpace(object["id"]); len(raw) > 0 && raw[0] != '"' &&
			len(id) <= dedup.MaxIDBytes-1 && string(raw) != string(id) {
			t.Fatalf("got %q, want %s", id, raw)
		}
	})
}
