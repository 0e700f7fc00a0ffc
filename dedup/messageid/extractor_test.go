package messageid_test

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
)

func mustExtractor(t testing.TB, s messageid.Source) *messageid.Extractor {
	t.Helper()
	e, err := messageid.New(s)
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
	long := strings.Repeat("x", messageid.MaxBytes+1)
	longSum := sha256.Sum256([]byte(long))
	cases := []struct {
		name    string
		source  messageid.Source
		record  kgo.Record
		want    string
		missing dedup.MissingReason
	}{
		{"header", messageid.Source{From: "header", Name: "id"},
			kgo.Record{Headers: headers("a", "1", "id", "2")}, "2", 0},
		{"header: the first of several counts", messageid.Source{From: "header", Name: "id"},
			kgo.Record{Headers: headers("id", "1", "id", "2")}, "1", 0},
		{"header: names are case-sensitive", messageid.Source{From: "header", Name: "id"},
			kgo.Record{Headers: headers("ID", "1")}, "", dedup.MissingAbsent},
		{"header: null", messageid.Source{From: "header", Name: "id"},
			kgo.Record{Headers: []kgo.RecordHeader{{Key: "id"}}}, "", dedup.MissingNull},
		{"header: empty", messageid.Source{From: "header", Name: "id"},
			kgo.Record{Headers: headers("id", "")}, "", dedup.MissingEmpty},
		{"key: any bytes", messageid.Source{From: "key"}, kgo.Record{Key: []byte{0, 0xff}},
			"\x00\xff",
			0},
		{"key: null", messageid.Source{From: "key"}, kgo.Record{}, "", dedup.MissingNull},
		{"key: empty", messageid.Source{From: "key"}, kgo.Record{Key: []byte{}}, "",
			dedup.MissingEmpty},
		{"key: 4 KiB stay", messageid.Source{From: "key"}, kgo.Record{Key: []byte(long[1:])},
			long[1:],
			0},
		{"key: longer is hashed", messageid.Source{From: "key"}, kgo.Record{Key: []byte(long)},
			"sha256:" + string(longSum[:]), 0},
		{"value_hash", messageid.Source{From: "value_hash"}, kgo.Record{Value: []byte("value")},
			string(sum[:]), 0},
		{"value_hash: tombstone", messageid.Source{From: "value_hash"}, kgo.Record{}, "",
			dedup.MissingNull},
		{"header: the last of several", messageid.Source{From: "header", Name: "id",
			Occurrence: "last"}, kgo.Record{Headers: headers("id", "1", "id", "2", "a", "3")}, "2",
			0},
		{"header: the first of several, as told", messageid.Source{From: "header", Name: "id",
			Occurrence: "first"}, kgo.Record{Headers: headers("id", "1", "id", "2")}, "1", 0},
		{"header: no last one", messageid.Source{From: "header", Name: "id", Occurrence: "last"},
			kgo.Record{Headers: headers("a", "3")}, "", dedup.MissingAbsent},
		{"header: the last one is null", messageid.Source{From: "header", Name: "id",
			Occurrence: "last"}, kgo.Record{Headers: append(headers("id", "1"),
			kgo.RecordHeader{Key: "id"})}, "", dedup.MissingNull},
		{
			"composite", messageid.Source{From: "composite",
				Parts: []messageid.Source{{From: "header", Name: "shop"}, {From: "key"}}},
			kgo.Record{Key: []byte("bc"), Headers: headers("shop", "a")}, "\x01a\x02bc", 0,
		},
		{
			"composite: one missing part", messageid.Source{From: "composite",
				Parts: []messageid.Source{{From: "header", Name: "shop"}, {From: "key"}}},
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
	simple := messageid.Source{From: "first_of", Parts: []messageid.Source{
		{From: "header", Name: "id"}, {From: "json", Path: "id"}}}
	// CloudEvents, in binary and in structured mode: an event is known by its source and its id.
	events := messageid.Source{From: "first_of", Parts: []messageid.Source{
		{From: "composite", Parts: []messageid.Source{{From: "header", Name: "ce_source"},
			{From: "header", Name: "ce_id"}}},
		{From: "composite", Parts: []messageid.Source{{From: "json", Path: "source"},
			{From: "json", Path: "id"}}},
	}}
	const doc = `{"source":"/shop","id":"a"}`
	for _, c := range []struct {
		name    string
		source  messageid.Source
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

func TestCompositeIsUnambiguous(t *testing.T) {
	e := mustExtractor(t, messageid.Source{From: "composite",
		Parts: []messageid.Source{{From: "header", Name: "h"}, {From: "key"}}})
	one, _ := e.Extract(&kgo.Record{Key: []byte("bc"), Headers: headers("h", "a|")})
	two, _ := e.Extract(&kgo.Record{Key: []byte("|bc"), Headers: headers("h", "a")})
	if one == two {
		t.Errorf("both are %q", one)
	}
}

func TestBadSourcesAreRefused(t *testing.T) {
	cases := map[string]messageid.Source{
		`message_id: from "cookie" is not header, key, json, avro, protobuf, json_schema, ` +
			`debezium, maxwell, canal_json, ticdc, cockroachdb, mongodb, dms, value_hash, composite ` +
			`or first_of`: {From: "cookie"},
		`message_id: occurrence "second" is not first or last`: {From: "header", Name: "id",
			Occurrence: "second"},
		`message_id: normalize: "upper" is not trim, payload, unquote, lower or uuid`: {From: "key",
			Normalize: []string{"trim", "upper"}},
		`message_id: normalize has 9 steps, at most 8 are allowed`: {From: "key",
			Normalize: slices.Repeat([]string{"trim"}, 9)},
		`message_id: normalize belongs to places without parts, not to value_hash ` +
			`or debezium`: {From: "value_hash",
			Normalize: []string{"lower"}},
		`message_id: first_of needs at least two parts`: {From: "first_of"},
		`message_id: first_of: composite: from header needs a name`: {From: "first_of",
			Parts: []messageid.Source{{From: "key"}, {From: "composite",
				Parts: []messageid.Source{{From: "header"}, {From: "key"}}}}},
		`message_id: from header needs a name`:         {From: "header"},
		`message_id: path "a..b" has an empty segment`: {From: "json", Path: "a..b"},
		`message_id: path "" has an empty segment`:     {From: "json"},
		`message_id: path "$.a" begins with $, which stands for nothing here; write a, ` +
			`or \$ for a member of this name`: {From: "json", Path: "$.a"},
		`message_id: part "header" is not value or key`: {From: "json", Path: "a", Part: "header"},
		`message_id: composite needs at least two parts`: {From: "composite",
			Parts: []messageid.Source{{From: "key"}}},
		`message_id: composite: from header needs a name`: {From: "composite",
			Parts: []messageid.Source{{From: "key"}, {From: "header"}}},
	}
	for want, source := range cases {
		if _, err := messageid.New(source); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// The name of an extractor is stored with its scope: two sources that make IDs differently must
// not share a name.
func TestExtractorNamesDiffer(t *testing.T) {
	sources := []messageid.Source{
		{From: "key"},
		{From: "value_hash"},
		{From: "header", Name: "key"},
		{From: "header", Name: `a",header:"b`},
		{From: "header", Name: "key", Occurrence: "last"},
		{From: "key", Normalize: []string{"trim"}},
		{From: "key", Normalize: []string{"trim", "lower"}},
		{From: "key", Normalize: []string{"lower", "trim"}},
		{From: "first_of", Parts: []messageid.Source{{From: "key"}, {From: "value_hash"}}},
		{From: "first_of", Parts: []messageid.Source{{From: "value_hash"}, {From: "key"}}},
		{From: "json", Path: "key"},
		{From: "json", Path: "key", Part: "key"},
		{From: "json", Path: "key|json.a"},
		{From: "json", Path: `key\|json.a`},
		{From: "json", Path: "a.0"},
		{From: "json", Path: `a\[0\]`},
		{From: "composite", Parts: []messageid.Source{{From: "key"}, {From: "value_hash"}}},
		{From: "composite", Parts: []messageid.Source{{From: "value_hash"}, {From: "key"}}},
		{From: "composite", Parts: []messageid.Source{{From: "header", Name: "a"},
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
	key, header := messageid.Source{From: "key"}, messageid.Source{From: "header", Name: "id"}
	for _, c := range []struct {
		source   messageid.Source
		name, id string
	}{
		{header, `header:"id"`, "first"},
		{key, "key", "k"},
		{messageid.Source{From: "value_hash"}, "value_hash",
			string(sum[:])},
		{messageid.Source{From: "json", Path: "id"}, `json:"id"`, "a"},
		{messageid.Source{From: "json", Path: "n.0"}, `json:"n.0"`, "1.50"},
		{messageid.Source{From: "json", Path: `x\.y`}, `json:"x\\.y"`, "b"},
		{messageid.Source{From: "composite", Parts: []messageid.Source{key, header}},
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
	got := messageid.NewFingerprinter().Of(record)
	if want := "c3de40a4bd7b2087b6d6f36ddfb6c5ab"; hex.EncodeToString(got[:]) != want {
		t.Errorf("the fingerprint is %x, want %s", got, want)
	}
}
