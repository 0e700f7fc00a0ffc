package dedup_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/memory"
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
		{"header: the last of several", dedup.Source{From: "header", Name: "id",
			Occurrence: "last"}, kgo.Record{Headers: headers("id", "1", "id", "2", "a", "3")}, "2",
			0},
		{"header: the first of several, as told", dedup.Source{From: "header", Name: "id",
			Occurrence: "first"}, kgo.Record{Headers: headers("id", "1", "id", "2")}, "1", 0},
		{"header: no last one", dedup.Source{From: "header", Name: "id", Occurrence: "last"},
			kgo.Record{Headers: headers("a", "3")}, "", dedup.MissingAbsent},
		{"header: the last one is null", dedup.Source{From: "header", Name: "id",
			Occurrence: "last"}, kgo.Record{Headers: append(headers("id", "1"),
			kgo.RecordHeader{Key: "id"})}, "", dedup.MissingNull},
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

// A producer that moves its ID from a field to a header sends copies of both kinds for a while.
func TestTheFirstPlaceWithAnIDCounts(t *testing.T) {
	simple := dedup.Source{From: "first_of", Parts: []dedup.Source{
		{From: "header", Name: "id"}, {From: "json", Path: "id"}}}
	// CloudEvents, in binary and in structured mode: an event is known by its source and its id.
	events := dedup.Source{From: "first_of", Parts: []dedup.Source{
		{From: "composite", Parts: []dedup.Source{{From: "header", Name: "ce_source"},
			{From: "header", Name: "ce_id"}}},
		{From: "composite", Parts: []dedup.Source{{From: "json", Path: "source"},
			{From: "json", Path: "id"}}},
	}}
	const doc = `{"source":"/shop","id":"a"}`
	for _, c := range []struct {
		name    string
		source  dedup.Source
		record  kgo.Record
		want    string
		missing dedup.MissingReason
	}{
		{"header", simple, kgo.Record{Headers: headers("id", "h"), Value: []byte(doc)}, "h", 0},
		{"field", simple, kgo.Record{Value: []byte(doc)}, "a", 0},
		{"empty header", simple, kgo.Record{Headers: headers("id", ""), Value: []byte(doc)}, "a",
			0},
		{"neither", simple, kgo.Record{Value: []byte(`{"id":null}`)}, "", dedup.MissingNull},
		{"no document", simple, kgo.Record{Value: []byte("avro")}, "", dedup.MissingUnparsable},
		{"binary", events, kgo.Record{Headers: headers("ce_id", "a", "ce_source", "/shop")},
			"\x05/shop\x01a", 0},
		{"structured", events, kgo.Record{Value: []byte(doc)}, "\x05/shop\x01a", 0},
		{"half of one kind, all of the other", events,
			kgo.Record{Headers: headers("ce_id", "b"), Value: []byte(doc)}, "\x05/shop\x01a", 0},
	} {
		id, missing := mustExtractor(t, c.source).Extract(&c.record)
		if string(id) != c.want || missing != c.missing {
			t.Errorf("%s: got %q, %v; want %q, %v", c.name, id, missing, c.want, c.missing)
		}
	}
}

func TestSpellings(t *testing.T) {
	const uuid = "0a12c11d-71fa-4a2d-a02e-350ec8fc9e34"
	for _, c := range []struct{ steps, from, want string }{
		{"trim", " \t\n\v\f\ra b\r\n", "a b"},
		{"trim", "\u00a0a", "\u00a0a"},
		{"trim", " \n", ""},
		{"unquote", `"a"`, "a"},
		{"unquote", `"\u0061\"\n"`, "a\"\n"},
		{"unquote", `"a`, `"a`},
		{"unquote", `a"`, `a"`},
		{"unquote", `"`, `"`},
		{"unquote", `""`, ""},
		{"unquote", `"a" "b"`, `"a" "b"`},
		{"unquote", `"\x"`, `"\x"`},
		{"unquote", `'a'`, `'a'`},
		{"unquote", `"\"a\""`, `"a"`},
		{"unquote unquote", `"\"a\""`, "a"},
		{"lower", "aBÉZ-[@", "abÉz-[@"},
		{"lower", "\xffA", "\xffa"},
		{"uuid", uuid, uuid},
		{"uuid", strings.ToUpper(uuid), uuid},
		{"uuid", strings.ReplaceAll(uuid, "-", ""), uuid},
		{"uuid", "{" + strings.ToUpper(uuid) + "}", uuid},
		{"uuid", "(" + uuid + ")", uuid},
		{"uuid", "{" + strings.ReplaceAll(uuid, "-", "") + "}", uuid},
		{"uuid", "URN:uuid:" + uuid, uuid},
		{"uuid", "{" + uuid, "{" + uuid},
		{"uuid", "{" + uuid + ")", "{" + uuid + ")"},
		{"uuid", uuid + "0", uuid + "0"},
		{"uuid", "0a12c11d-71fa-4a2d-a02e-350ec8fc9e3x", "0a12c11d-71fa-4a2d-a02e-350ec8fc9e3x"},
		{"uuid", "0a12c11d71-fa-4a2d-a02e-350ec8fc9e34", "0a12c11d71-fa-4a2d-a02e-350ec8fc9e34"},
		{"uuid", "ORDER-1", "ORDER-1"},
		{"uuid", " " + uuid, " " + uuid},
		{"trim unquote lower uuid", " \"{0A12C11D-71FA-4A2D-A02E-350EC8FC9E34}\" ", uuid},
		{"lower trim", " A", "a"},
	} {
		e := mustExtractor(t, dedup.Source{From: "key", Normalize: strings.Fields(c.steps)})
		record := &kgo.Record{Key: []byte(c.from)}
		id, missing := e.Extract(record)
		if string(id) != c.want || (missing == dedup.MissingEmpty) != (c.want == "") {
			t.Errorf("%s: %q became %q, %v, want %q", c.steps, c.from, id, missing, c.want)
		}
		if string(record.Key) != c.from {
			t.Errorf("%s changed the record: %q", c.steps, record.Key)
		}
	}
}

// FuzzSpellings: an ID in its one spelling keeps it, and the record stays what it is.
func FuzzSpellings(f *testing.F) {
	for _, key := range []string{"", " a ", `"A"`, "{0A12C11D-71FA-4A2D-A02E-350EC8FC9E34}",
		"urn:uuid:0a12c11d-71fa-4a2d-a02e-350ec8fc9e34", "0a12c11d71fa4a2da02e350ec8fc9e34"} {
		f.Add([]byte(key))
	}
	steps := []string{"trim", "lower", "uuid"}
	e := mustExtractor(f, dedup.Source{From: "key", Normalize: steps})
	unquote := mustExtractor(f, dedup.Source{From: "key", Normalize: []string{"unquote"}})
	f.Fuzz(func(t *testing.T, key []byte) {
		before := bytes.Clone(key)
		id, missing := e.Extract(&kgo.Record{Key: key})
		if !bytes.Equal(before, key) {
			t.Fatalf("%q became %q", before, key)
		}
		if missing == dedup.NotMissing && len(id) < dedup.MaxIDBytes {
			again, reason := e.Extract(&kgo.Record{Key: []byte(id)})
			if again != id || reason != missing {
				t.Fatalf("%q became %q, and then %q, %v", key, id, again, reason)
			}
		}
		quoted, err := json.Marshal(string(key))
		if err != nil || !utf8.Valid(key) || len(key) == 0 || len(key) > dedup.MaxIDBytes {
			return
		}
		if got, _ := unquote.Extract(&kgo.Record{Key: quoted}); string(got) != string(key) {
			t.Fatalf("%s became %q", quoted, got)
		}
	})
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
		{"rubbish behind the document", "id", `{"id":1}}`, "1", 0},
		{"rubbish behind the field", "id", `{"id":1,"x":oops}`, "1", 0},
		{"trailing comma", "id", `{"id":1,}`, "1", 0},
		{"rubbish behind a nested field", "a.id", `{"a":{"id":1,!}}`, "1", 0},
		{"rubbish behind the object of a field", "a.id", `{"a":{"id":1}!`, "1", 0},
		{"rubbish behind an element", "1", `[1,2,!]`, "2", 0},
		{"rubbish before the field", "id", `{"x":oops,"id":1}`, "", dedup.MissingUnparsable},
		{"rubbish and no field", "id", `{"x":1}}`, "", dedup.MissingUnparsable},
		{"rubbish right behind the field", "id", `{"id":1!}`, "", dedup.MissingUnparsable},
		{"rubbish right behind an element", "0", `[1!]`, "", dedup.MissingUnparsable},
		{"rubbish in the second of equal names", "id", `{"id":1,"id":2!}`, "",
			dedup.MissingUnparsable},
		{"too deep behind the field", "id", `{"id":1,"x":` + strings.Repeat("[", 10001), "1", 0},
		{"not a number", "id", `{"x":NaN,"y":[Infinity,-Infinity],"id":1}`, "1", 0},
		{"an ID that is not a number", "id", `{"id":NaN}`, "", dedup.MissingUnsupportedType},
		{"an infinite ID", "id", `{"id":Infinity}`, "", dedup.MissingUnsupportedType},
		{"a negative infinite ID", "id", `{"id":-Infinity}`, "", dedup.MissingUnsupportedType},
		{"not quite Infinity", "id", `{"x":-Inf,"id":1}`, "", dedup.MissingUnparsable},
		{"cut off", "id", `{"id":1`, "", dedup.MissingUnparsable},
		{"cut off behind a string", "id", `{"id":"1"`, "", dedup.MissingUnparsable},
		{"index in brackets", "items[1].id", `{"items":[{"id":1},{"id":2}]}`, "2", 0},
		{"index at the top", "[1]", `[1,2]`, "2", 0},
		{"byte order mark", "id", "\xef\xbb\xbf{\"id\":1}", "1", 0},
		{"half a byte order mark", "id", "\xef\xbb{\"id\":1}", "", dedup.MissingUnparsable},
		{"schema ID", "id", "\x00\x00\x00\x01\x02{\"id\":1}", "1", 0},
		{"schema ID and byte order mark", "id", "\x00{{{{\xef\xbb\xbf{\"id\":1}", "1", 0},
		{"schema ID and nothing", "id", "\x00\x00\x00\x01\x02", "", dedup.MissingUnparsable},
		{"schema ID before what is not JSON", "id", "\x00\x00\x00\x01\x02\x06abc", "",
			dedup.MissingUnparsable},
		{"half a schema ID", "id", "\x00\x00{\"id\":1}", "", dedup.MissingUnparsable},
		{"document in a string", "payload|json.id", `{"payload":"{\"id\":\"a\"}"}`, "a", 0},
		{"escapes of both documents", "p|json.id", `{"p":"{\"id\":\"\\u0061\\n\"}"}`, "a\n", 0},
		{"document in the place of a string", "payload|json.id", `{"payload":{"id":"a"}}`, "a", 0},
		{"documents in documents", "a|json.b|json[0]", `{"a":"{\"b\":\"[7]\"}"}`, "7", 0},
		{"rubbish in a document in a string", "p|json.id", `{"p":"oops"}`, "",
			dedup.MissingUnparsable},
		{"no document in a string", "p|json.id", `{"p":""}`, "", dedup.MissingEmpty},
		{"null in the place of a document", "p|json.id", `{"p":null}`, "", dedup.MissingNull},
		{"a number in the place of a document", "p|json.id", `{"p":1}`, "",
			dedup.MissingUnsupportedType},
		{"no string for a document", "p|json.id", `{}`, "", dedup.MissingAbsent},
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
	t.Run("of the key", func(t *testing.T) {
		e := mustExtractor(t, dedup.Source{From: "json", Path: "id", Part: "key"})
		id, missing := e.Extract(&kgo.Record{Key: []byte(`{"id":"a"}`)})
		if id != "a" || missing != dedup.NotMissing {
			t.Errorf("got %q, %v", id, missing)
		}
		if _, missing := e.Extract(&kgo.Record{Value: []byte(`{"id":"a"}`)}); missing !=
			dedup.MissingNull {
			t.Errorf("got %v", missing)
		}
	})
	t.Run("tombstone", func(t *testing.T) {
		e := mustExtractor(t, dedup.Source{From: "json", Path: "id"})
		if _, missing := e.Extract(&kgo.Record{}); missing != dedup.MissingNull {
			t.Errorf("got %v", missing)
		}
	})
}

func TestBadSourcesAreRefused(t *testing.T) {
	cases := map[string]dedup.Source{
		`message_id: from "cookie" is not header, key, json, value_hash, composite or first_of`: {
			From: "cookie"},
		`message_id: occurrence "second" is not first or last`: {From: "header", Name: "id",
			Occurrence: "second"},
		`message_id: normalize: "upper" is not trim, unquote, lower or uuid`: {From: "key",
			Normalize: []string{"trim", "upper"}},
		`message_id: normalize has 9 steps, at most 8 are allowed`: {From: "key",
			Normalize: slices.Repeat([]string{"trim"}, 9)},
		`message_id: normalize belongs to from header, key and json`: {From: "value_hash",
			Normalize: []string{"lower"}},
		`message_id: first_of needs at least two parts`: {From: "first_of"},
		`message_id: first_of: composite: from header needs a name`: {From: "first_of",
			Parts: []dedup.Source{{From: "key"}, {From: "composite",
				Parts: []dedup.Source{{From: "header"}, {From: "key"}}}}},
		`message_id: from header needs a name`:         {From: "header"},
		`message_id: path "a..b" has an empty segment`: {From: "json", Path: "a..b"},
		`message_id: path "" has an empty segment`:     {From: "json"},
		`message_id: path "$.a" begins with $, which stands for nothing here; write a, ` +
			`or \$ for a member of this name`: {From: "json", Path: "$.a"},
		`message_id: part "header" is not value or key`: {From: "json", Path: "a", Part: "header"},
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
		{From: "header", Name: "key", Occurrence: "last"},
		{From: "key", Normalize: []string{"trim"}},
		{From: "key", Normalize: []string{"trim", "lower"}},
		{From: "key", Normalize: []string{"lower", "trim"}},
		{From: "first_of", Parts: []dedup.Source{{From: "key"}, {From: "value_hash"}}},
		{From: "first_of", Parts: []dedup.Source{{From: "value_hash"}, {From: "key"}}},
		{From: "json", Path: "key"},
		{From: "json", Path: "key", Part: "key"},
		{From: "json", Path: "key|json.a"},
		{From: "json", Path: `key\|json.a`},
		{From: "json", Path: "a.0"},
		{From: "json", Path: `a\[0\]`},
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

// What is registered with the scopes of earlier versions must be what an unchanged configuration
// has now, and the same record must have the same ID and fingerprint: its copies may be claimed.
func TestIDsAndTheirExtractorAreThoseOfEarlierVersions(t *testing.T) {
	record := &kgo.Record{Key: []byte("k"), Value: []byte(`{"id":"a","n":[1.50],"x.y":"\u0062"}`),
		Headers: headers("id", "first", "id", "second")}
	sum := sha256.Sum256(record.Value)
	key, header := dedup.Source{From: "key"}, dedup.Source{From: "header", Name: "id"}
	for _, c := range []struct {
		source   dedup.Source
		name, id string
	}{
		{header, `header:"id"`, "first"},
		{key, "key", "k"},
		{dedup.Source{From: "value_hash"}, "value_hash",
			string(sum[:])},
		{dedup.Source{From: "json", Path: "id"}, `json:"id"`, "a"},
		{dedup.Source{From: "json", Path: "n.0"}, `json:"n.0"`, "1.50"},
		{dedup.Source{From: "json", Path: `x\.y`}, `json:"x\\.y"`, "b"},
		{dedup.Source{From: "composite", Parts: []dedup.Source{key, header}},
			`composite(key,header:"id")`, "\x01k\x05first"},
	} {
		e := mustExtractor(t, c.source)
		id, missing := e.Extract(record)
		if missing != dedup.NotMissing || string(id) != c.id {
			t.Errorf("%s: got %q, %v, want %q", c.name, id, missing, c.id)
		}
		if e.String() != c.name {
			t.Errorf("the extractor is %s, want %s", e, c.name)
		}
	}
	got := dedup.NewFingerprinter().Of(record)
	if want := "c3de40a4bd7b2087b6d6f36ddfb6c5ab"; hex.EncodeToString(got[:]) != want {
		t.Errorf("the fingerprint is %x, want %s", got, want)
	}
}

func TestASkippedSchemaIDIsTold(t *testing.T) {
	e := mustExtractor(t, dedup.Source{From: "composite", Parts: []dedup.Source{
		{From: "json", Path: "id"}, {From: "json", Path: "n"}}})
	for _, doc := range []string{`{"id":1,"n":1}`, "\x00\x00\x00\x00\x01avro"} {
		e.Extract(&kgo.Record{Value: []byte(doc)})
		if e.SkippedSchemaID() {
			t.Errorf("%q has no document behind a schema ID", doc)
		}
	}
	e.Extract(&kgo.Record{Value: []byte("\x00\x00\x00\x00\x01{\"id\":1,\"n\":1}")})
	if !e.SkippedSchemaID() {
		t.Error("nobody hears of the schema ID")
	}
}

func TestTheLogTellsOfSchemaIDsOnce(t *testing.T) {
	var text strings.Builder
	e := mustExtractor(t, dedup.Source{From: "json", Path: "id"})
	store := memory.New(memory.Options{})
	defer store.Close()
	judge := func(doc string) {
		scope := dedup.Scope{ConsumerGroup: "g", Name: "t", TTL: time.Hour, Buckets: 1}
		d := dedup.New(scope, store, dedup.Options{Extractor: e,
			Logger: slog.New(slog.NewTextHandler(&text, nil))})
		_, err := d.Judge(t.Context(), []dedup.Message{{Record: &kgo.Record{Value: []byte(doc)}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if judge(`{"id":1}`); text.Len() > 0 {
		t.Error(text.String())
	}
	for range 3 { // lanes
		judge("\x00\x00\x00\x00\x01{\"id\":2}")
	}
	if n := strings.Count(text.String(), "five bytes of a schema registry"); n != 1 {
		t.Errorf("told %d times:\n%s", n, &text)
	}
}

// FuzzJSONField compares with encoding/json: in a document that is valid a string or number is
// found exactly where it finds one, and what stands behind or before such a document changes
// nothing.
func FuzzJSONField(f *testing.F) {
	for _, doc := range []string{
		`{"id":"a"}`, `{"id":1.50}`, `{"id":{"id":2}}`, `[{"id":3}]`, `{"id":"\u00e9\ud800"}`,
		`{"i\u0064":"x","id":null}`, `{"id":tru}`, "{\"id\":\"\xff\"}", `{"id":-0e1}`,
		` {"id" : [ ] }`, `{"id":1,"x":NaN}`, `{"id":1}}`, "\x00\x00\x00\x00\x01{\"id\":1}",
	} {
		f.Add([]byte(doc), []byte("}"))
	}
	e := mustExtractor(f, dedup.Source{From: "json", Path: "id"})
	extract := func(parts ...[]byte) (dedup.ID, dedup.MissingReason) {
		return e.Extract(&kgo.Record{Value: bytes.Join(parts, nil)})
	}
	f.Fuzz(func(t *testing.T, doc, rubbish []byte) {
		id, missing := extract(doc)
		if again, reason := extract(doc); again != id || reason != missing {
			t.Fatalf("%q, %v and then %q, %v", id, missing, again, reason)
		}
		if !json.Valid(doc) {
			return
		}
		if missing == dedup.MissingUnparsable {
			t.Fatal("a valid document is unparsable")
		}
		frame := []byte("\x00\x01\x02\x03\x04\xef\xbb\xbf")
		if framed, reason := extract(frame, doc); framed != id || reason != missing {
			t.Fatalf("behind a schema ID: %q, %v", framed, reason)
		}
		if missing != dedup.NotMissing {
			return
		}
		if longer, reason := extract(doc, rubbish); longer != id || reason != missing {
			t.Fatalf("with rubbish behind it: %q, %v", longer, reason)
		}
		var object map[string]json.RawMessage
		if json.Unmarshal(doc, &object) != nil {
			return
		}
		// encoding/json puts U+FFFD in place of what is not UTF-8, in names as well.
		if raw := bytes.TrimSpace(object["id"]); len(raw) > 0 && raw[0] != '"' &&
			len(id) <= dedup.MaxIDBytes-1 && string(raw) != string(id) {
			t.Fatalf("got %q, want %s", id, raw)
		}
	})
}

// FuzzDocumentInAString: a document is the same one in a string of another one.
func FuzzDocumentInAString(f *testing.F) {
	for _, doc := range []string{`{"id":"a"}`, `{"id":1.50}`, `{"id":"\u00e9\ud83d\ude00\n"}`,
		`[{"id":3}]`, `{"id":null}`, `{"id":1,"x":NaN}`, "", "\ufeff{}"} {
		f.Add(doc)
	}
	outer := mustExtractor(f, dedup.Source{From: "json", Path: "id"})
	inner := mustExtractor(f, dedup.Source{From: "json", Path: "p|json.id"})
	f.Fuzz(func(t *testing.T, doc string) {
		if strings.HasPrefix(doc, "\x00") { // a schema ID stands before a record only
			return
		}
		packed, err := json.Marshal(map[string]string{"p": doc})
		if err != nil || !utf8.ValidString(doc) {
			return
		}
		want, reason := outer.Extract(&kgo.Record{Value: []byte(doc)})
		got, missing := inner.Extract(&kgo.Record{Value: packed})
		if got != want || missing != reason {
			t.Fatalf("got %q, %v; want %q, %v", got, missing, want, reason)
		}
	})
}
