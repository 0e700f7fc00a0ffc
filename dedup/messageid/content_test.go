package messageid_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
)

func fingerprinter(t testing.TB, c messageid.Content) dedup.Fingerprinter {
	t.Helper()
	return withContent(t, c).Fingerprinter()
}

func withContent(t testing.TB, c messageid.Content) *messageid.Extractor {
	t.Helper()
	e, err := mustExtractor(t, messageid.Source{From: "key"}).With(messageid.Rules{Fingerprint: c})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Debezium sets the time at which it read a change; a webhook counts its attempts.
func TestContentIsWhatCounts(t *testing.T) {
	ignore := messageid.Content{Ignore: []string{"ts_ms", "source.ts_ms", "items[1].at", "gone"}}
	only := messageid.Content{Only: []string{"order.id", "order.total"}}
	for _, c := range []struct {
		name     string
		content  messageid.Content
		one, two string
		equal    bool
	}{
		{"all: other bytes", messageid.Content{}, `{"a":1}`, `{"a": 1}`, false},
		{"none: anything", messageid.Content{None: true}, `{"a":1}`, "avro", true},
		{"an ignored field", ignore, `{"a":1,"ts_ms":1}`, `{"a":1,"ts_ms":2}`, true},
		{"an ignored field that is missing", ignore, `{"a":1}`, `{"a":1,"ts_ms":2}`, true},
		{"an ignored object", messageid.Content{Ignore: []string{"meta"}},
			`{"meta":{"x":[1]},"a":1}`, `{"a":1,"meta":null}`, true},
		{"a nested ignored field", ignore, `{"source":{"ts_ms":1,"b":2}}`,
			`{"source":{"b":2,"ts_ms":9}}`, true},
		{"a field of the same name elsewhere", ignore, `{"b":{"ts_ms":1}}`, `{"b":{"ts_ms":2}}`,
			false},
		{"another field", ignore, `{"a":1,"ts_ms":1}`, `{"a":2,"ts_ms":1}`, false},
		{"in an ignored element's place", ignore, `{"items":[{},{"at":1}]}`,
			`{"items":[{},{"at":2}]}`, true},
		{"in another element's place", ignore, `{"items":[{"at":1}]}`, `{"items":[{"at":2}]}`,
			false},
		{"more elements than ignored", messageid.Content{Ignore: []string{"[0]"}}, `[1,2]`, `[1]`,
			false},
		{"an ignored element", messageid.Content{Ignore: []string{"[0]"}}, `[1,2]`, `[{},2]`, true},
		{"white space, order, escapes", ignore, `{"a":"\u0062","c":[1,2]}`,
			" {\t\"c\": [1 ,2],\n\"a\":\"b\"}", true},
		{"the order of elements", ignore, `[1,2]`, `[2,1]`, false},
		{"the last of equal names", ignore, `{"a":1,"a":2}`, `{"a":2}`, true},
		{"the first of equal names", ignore, `{"a":1,"a":2}`, `{"a":1}`, false},
		{"numbers as written", ignore, `{"a":1.0}`, `{"a":1}`, false},
		{"a number and a string", ignore, `{"a":1}`, `{"a":"1"}`, false},
		{"a word and a string", ignore, `{"a":null}`, `{"a":"null"}`, false},
		{"nothing and null", ignore, `{"a":null}`, `{}`, false},
		{"an object and an array", ignore, `{}`, `[]`, false},
		{"what moves between name and value", ignore, `{"ab":"c"}`, `{"a":"bc"}`, false},
		{"levels", ignore, `{"a":{"b":1},"c":2}`, `{"a":{"b":1,"c":2}}`, false},
		{"no document counts as a whole", ignore, `{"a":1,"ts_ms":1`, `{"a":1,"ts_ms":2`, false},
		{"behind a schema ID", ignore, "\x00\x00\x00\x00\x01{\"ts_ms\":1}",
			"\x00\x00\x00\x00\x01{\"ts_ms\":2}", true},
		{"the fields that count", only, `{"order":{"id":1,"total":2,"at":3},"n":1}`,
			`{"n":2,"order":{"total":2,"id":1}}`, true},
		{"another of the fields that count", only, `{"order":{"id":1,"total":2}}`,
			`{"order":{"id":1,"total":3}}`, false},
		{"fields in each other's place", only, `{"order":{"id":1,"total":2}}`,
			`{"order":{"id":2,"total":1}}`, false},
		{"a field that counts is missing", only, `{"order":{"id":1},"n":1}`,
			`{"order":{"id":1},"n":2}`, false},
	} {
		f := fingerprinter(t, c.content)
		of := func(doc string) dedup.Fingerprint {
			return f.Of(&kgo.Record{Key: []byte("k"), Value: []byte(doc)})
		}
		if got := of(c.one).Matches(of(c.two)); got != c.equal {
			t.Errorf("%s: %s and %s are the same: %v", c.name, c.one, c.two, got)
		}
		for _, doc := range []string{c.one, c.two} {
			if again := of(doc); again != of(doc) {
				t.Errorf("%s: %s differs from itself", c.name, doc)
			}
		}
	}
}

func TestTheKeyAndNullCountBesideFields(t *testing.T) {
	e := withContent(t, messageid.Content{Ignore: []string{"n"}})
	f := e.Fingerprinter()
	of := func(key, value []byte) dedup.Fingerprint {
		return f.Of(&kgo.Record{Key: key, Value: value})
	}
	all := []dedup.Fingerprint{
		of([]byte("k"), []byte(`{}`)), of([]byte("l"), []byte(`{}`)), of(nil, []byte(`{}`)),
		of([]byte{}, []byte(`{}`)), of([]byte("k"), nil), of([]byte("k"), []byte{}),
	}
	for i, one := range all {
		for j, two := range all[:i] {
			if one == two {
				t.Errorf("records %d and %d are the same", j, i)
			}
		}
	}
	plain := messageid.NewFingerprinter()
	for _, r := range []*kgo.Record{{Key: []byte("k")}, {Value: []byte("avro")}, {}} {
		if f.Of(r) != plain.Of(r) || e.Partial(r) {
			t.Errorf("%s: a value that cannot be read does not count as a whole", r.Value)
		}
	}
}

func TestTheValueHashLeavesFieldsOut(t *testing.T) {
	e := mustExtractor(t, messageid.Source{From: "value_hash", Ignore: []string{"at"}})
	id := func(value string) dedup.ID {
		id, missing := e.Extract(&kgo.Record{Value: []byte(value)})
		if missing != dedup.NotMissing || len(id) != 32 {
			t.Errorf("%s: %x, %v", value, id, missing)
		}
		return id
	}
	if id(`{"a":1,"at":1}`) != id(`{"at":2, "a":1}`) {
		t.Error("an ignored field makes another ID")
	}
	if id(`{"a":1}`) == id(`{"a":2}`) || id(`avro1`) == id(`avro2`) {
		t.Error("two values have one ID")
	}
	if _, missing := e.Extract(&kgo.Record{}); missing != dedup.MissingNull {
		t.Errorf("a tombstone is %v", missing)
	}
}

// Claims of another rule have other fingerprints: their copies would be conflicts.
func TestContentIsRegistered(t *testing.T) {
	key := mustExtractor(t, messageid.Source{From: "key"})
	for want, c := range map[string]messageid.Content{
		"key":                               {},
		"key; fingerprint none":             {None: true},
		`key; fingerprint only "a"`:         {Only: []string{"a"}},
		`key; fingerprint ignore "a.0","b"`: {Ignore: []string{"b", "a[0]", "a.0"}},
	} {
		e, err := key.With(messageid.Rules{Fingerprint: c})
		if err != nil || e.String() != want {
			t.Errorf("%v: %s, %v, want %s", c, e, err, want)
		}
	}
	for want, source := range map[string]messageid.Source{
		`value_hash(ignore "at")`: {From: "value_hash", Ignore: []string{"at"}},
		`value_hash(only "at")`:   {From: "value_hash", Only: []string{"at"}},
	} {
		if e := mustExtractor(t, source); e.String() != want {
			t.Errorf("%s, want %s", e, want)
		}
	}
}

func TestBadContentIsRefused(t *testing.T) {
	for want, c := range map[string]messageid.Content{
		"fingerprint: none, ignore and only exclude each other": {None: true, Only: []string{"a"}},
		`fingerprint: ignore: path "a." has an empty segment`:   {Ignore: []string{"a."}},
		`fingerprint: only: path "a|json.b" leads into a document within a string`: {
			Only: []string{"a|json.b"}},
		"fingerprint: only has 33 paths, at most 32 are allowed": {
			Only: strings.Split(strings.Repeat("a,", 32)+"a", ",")},
	} {
		_, err := mustExtractor(t, messageid.Source{From: "key"}).With(
			messageid.Rules{Fingerprint: c})
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	for _, s := range []messageid.Source{{From: "key", Ignore: []string{"a"}},
		{From: "value_hash", Ignore: []string{"a"}, Only: []string{"b"}}} {
		if _, err := messageid.New(s); err == nil {
			t.Errorf("%v is accepted", s)
		}
	}
}

// FuzzContent compares with encoding/json: two documents are the same if it writes the same for
// both.
func FuzzContent(f *testing.F) {
	for _, doc := range []string{`{"a":1,"b":[true,null]}`, `{"b":[ true,null],"a":1}`, `{"a":{}}`,
		`{"a":[]}`, `["\u00e9"]`, `["é"]`, `{"a":1,"a":2}`, `{"n":1}`, `{"n":{"n":2}}`, `[1,[2]]`,
		strings.Repeat("[", 50) + strings.Repeat("]", 50)} {
		f.Add([]byte(doc), []byte(`{"a":2}`))
	}
	print := fingerprinter(f, messageid.Content{Ignore: []string{"n"}})
	of := func(doc []byte) dedup.Fingerprint { return print.Of(&kgo.Record{Value: doc}) }
	f.Fuzz(func(t *testing.T, one, two []byte) {
		got := of(one) == of(two)
		if bytes.Equal(one, two) && !got {
			t.Fatal("a document differs from itself")
		}
		a, plain := written(one)
		b, plainToo := written(two)
		if plain && plainToo && (a == b) != got {
			t.Fatalf("%s and %s are the same: %v", a, b, got)
		}
	})
}

// written is a document as encoding/json writes it, without the ignored field. Texts that it cannot
// write back are not plain.
func written(doc []byte) (text string, plain bool) {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(doc))
	decoder.UseNumber()
	if !json.Valid(doc) || !utf8.Valid(doc) || bytes.Contains(doc, []byte(`\u`)) ||
		decoder.Decode(&value) != nil {
		return "", false
	}
	if object, is := value.(map[string]any); is {
		delete(object, "n")
	}
	again, err := json.Marshal(value)
	return string(again), err == nil
}
