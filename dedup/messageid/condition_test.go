package messageid_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
)

func TestOnlyIfLeavesOutWhatIsKnownNotToHaveTheValue(t *testing.T) {
	header := messageid.Source{From: "header", Name: "type"}
	field := messageid.Source{From: "json", Path: "op"}
	doc := func(text string) kgo.Record { return kgo.Record{Value: []byte(text)} }
	for _, c := range []struct {
		name   string
		only   messageid.Condition
		record kgo.Record
		exempt bool
	}{
		{"one of the values", messageid.Condition{Place: header, Is: []string{"a", "b"}},
			kgo.Record{Headers: headers("type", "b")}, false},
		{"another value", messageid.Condition{Place: header, Is: []string{"a", "b"}},
			kgo.Record{Headers: headers("type", "B")}, true},
		{"no header", messageid.Condition{Place: header, Is: []string{"a"}}, kgo.Record{}, true},
		{"any value", messageid.Condition{Place: header}, kgo.Record{Headers: headers("type", "x")},
			false},
		{"an empty value", messageid.Condition{Place: header},
			kgo.Record{Headers: headers("type", "")}, true},
		{"key", messageid.Condition{Place: messageid.Source{From: "key"}, Is: []string{"k"}},
			kgo.Record{Key: []byte("k")}, false},
		{"string", messageid.Condition{Place: field, Is: []string{"c"}}, doc(`{"op":"\u0063"}`),
			false},
		{"another string", messageid.Condition{Place: field, Is: []string{"c"}}, doc(`{"op":"d"}`),
			true},
		{"number", messageid.Condition{Place: field, Is: []string{"1"}}, doc(`{"op":1}`), false},
		{"boolean", messageid.Condition{Place: field, Is: []string{"true"}}, doc(`{"op":true}`),
			false},
		{"another boolean", messageid.Condition{Place: field, Is: []string{"true"}},
			doc(`{"op":false}`), true},
		{"any boolean", messageid.Condition{Place: field}, doc(`{"op":false}`), false},
		{"any object", messageid.Condition{Place: field}, doc(`{"op":{}}`), false},
		{"an object for a value", messageid.Condition{Place: field, Is: []string{"{}"}},
			doc(`{"op":{}}`), true},
		{"null", messageid.Condition{Place: field}, doc(`{"op":null}`), true},
		{"no string", messageid.Condition{Place: field}, doc(`{"op":""}`), true},
		{"no field", messageid.Condition{Place: field}, doc(`{}`), true},
		{"tombstone", messageid.Condition{Place: field}, kgo.Record{}, true},
		{"what is no document may have it", messageid.Condition{Place: field}, doc(`avro`), false},
	} {
		e, err := mustExtractor(t, messageid.Source{From: "header", Name: "id"}).With(
			messageid.Rules{OnlyIf: &c.only})
		if err != nil {
			t.Fatal(err)
		}
		if e.String() != `header:"id"` {
			t.Errorf("%s: IDs are said to be made otherwise: %s", c.name, e)
		}
		_, bare := e.Extract(&c.record)
		c.record.Headers = append(c.record.Headers, headers("id", "1")...)
		id, missing := e.Extract(&c.record)
		want := dedup.NotMissing
		if c.exempt {
			want = dedup.MissingExempt
		}
		if missing != want || (id == "1") == c.exempt {
			t.Errorf("%s: got %q, %v, want %v", c.name, id, missing, want)
		}
		if (bare == dedup.MissingExempt) != c.exempt {
			t.Errorf("%s: without an ID: %v", c.name, bare)
		}
	}
}

func TestTombstonesAreToldApart(t *testing.T) {
	key := mustExtractor(t, messageid.Source{From: "key"})
	field := &messageid.Condition{Place: messageid.Source{From: "json", Path: "op"}}
	tombstone := &kgo.Record{Key: []byte("k")}
	empty := &kgo.Record{Key: []byte("k"), Value: []byte{}}
	for _, c := range []struct {
		name             string
		rules            messageid.Rules
		tombstone, empty dedup.MissingReason
	}{
		{"not", messageid.Rules{}, dedup.NotMissing, dedup.NotMissing},
		{"apart", messageid.Rules{Tombstones: true}, dedup.MissingTombstone, dedup.NotMissing},
		{"with a condition", messageid.Rules{OnlyIf: field}, dedup.MissingExempt,
			dedup.MissingExempt},
		{"before a condition", messageid.Rules{OnlyIf: field, Tombstones: true},
			dedup.MissingTombstone, dedup.MissingExempt},
	} {
		e, err := key.With(c.rules)
		if err != nil || e.String() != "key" {
			t.Fatalf("%s: %s, %v", c.name, e, err)
		}
		if _, got := e.Extract(tombstone); got != c.tombstone {
			t.Errorf("%s: a tombstone is %v, want %v", c.name, got, c.tombstone)
		}
		if _, got := e.Extract(empty); got != c.empty {
			t.Errorf("%s: an empty value is %v, want %v", c.name, got, c.empty)
		}
	}
}

func TestBadConditionsAreRefused(t *testing.T) {
	for want, source := range map[string]messageid.Source{
		`only_if: from "value_hash" is not header, key, json, avro or protobuf`: {
			From: "value_hash"},
		`only_if: from header needs a name`:       {From: "header"},
		`only_if: path "a." has an empty segment`: {From: "json", Path: "a."},
	} {
		_, err := mustExtractor(t, messageid.Source{From: "key"}).With(
			messageid.Rules{OnlyIf: &messageid.Condition{Place: source}})
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
