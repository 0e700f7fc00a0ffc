package report

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
)

// withDocuments reads values as JSON.
func withDocuments(o *Options) {
	o.Document = func(_ context.Context, r *kgo.Record) ([]byte, bool, error) {
		return r.Value, len(r.Value) > 0, nil
	}
}

func TestTheReportTellsInWhatConflictsDiffer(t *testing.T) {
	var in topic
	at := time.Duration(0)
	put := func(id, value string) {
		in.put(0, at, id, value)
		at += time.Second
	}
	for n := range 6 {
		id := fmt.Sprint("webhook-", n)
		put(id, `{"a":1,"attempt":1,"meta":{"sent at":1}}`)
		put(id, `{"a":1,"attempt":2,"meta":{"sent at":2}}`)
	}
	put("real", `{"a":1}`)
	put("real", `{"a":2}`)
	put("spaces", `{"a":1}`)
	put("spaces", `{ "a" : 1 }`)
	put("text", `one`)
	put("text", `two`)
	put("same", `{"a":1}`)
	put("same", `{"a":1}`)
	r := in.build(t, withDocuments)
	want := Differing{Share: 1, Compared: 9, Whole: 1,
		Fields: []FieldCount{{"attempt", 6}, {"meta.sent at", 6}, {"a", 1}},
		Sets: []FieldSet{{[]string{"attempt", "meta.sent at"}, 6}, {[]string{}, 1},
			{[]string{"a"}, 1}}}
	if diff := cmp.Diff(want, r.Differing); diff != "" {
		t.Error(diff)
	}
	var table, page strings.Builder
	if err := errors.Join(r.WriteTable(&table), r.WriteHTML(&page)); err != nil {
		t.Fatal(err)
	}
	for _, said := range []string{"how the value is written", "the key, or a value without fields",
		"Of 9 conflicts compared, 6 differ in attempt, meta.sent at and in nothing else"} {
		if !strings.Contains(table.String(), said) || !strings.Contains(page.String(), said) {
			t.Errorf("%q is missing in\n%s", said, table.String())
		}
	}
	if want := `fingerprint: {ignore: [attempt, "meta.sent at"]}`; !strings.Contains(
		table.String(), want) {
		t.Errorf("%s is not proposed in\n%s", want, table.String())
	}
	proposed := in.build(t, func(o *Options) {
		withDocuments(o)
		o.Extractor = byHeader(t, messageid.Rules{
			Fingerprint: messageid.Content{Ignore: r.Differing.Sets[0].Fields}})
	})
	if got := proposed.Totals.Conflicts; got != 2 { // and what differs in its spaces is equal
		t.Errorf("%d conflicts with what is proposed", got)
	}
}

func TestNothingIsProposedForConflictsOfManyKinds(t *testing.T) {
	var in topic
	for n := range 9 {
		in.put(0, time.Duration(2*n)*time.Second, fmt.Sprint(n), `{"a":1,"b":1,"c":1}`)
		in.put(0, time.Duration(2*n+1)*time.Second, fmt.Sprint(n),
			[]string{`{"a":2,"b":1,"c":1}`, `{"a":1,"b":2,"c":1}`, `{"a":1,"b":1,"c":2}`}[n%3])
	}
	if note := in.build(t, withDocuments).DifferNote(); note != "" {
		t.Error(note)
	}
}

func TestAValueThatCannotBeReadEndsTheReport(t *testing.T) {
	var in topic
	in.put(0, 0, "a", `{}`)
	down := errors.New("schema_registry: connection refused")
	if _, err := in.try(t, func(o *Options) {
		o.Document = func(context.Context, *kgo.Record) ([]byte, bool, error) {
			return nil, false, down
		}
	}); !errors.Is(err, down) {
		t.Errorf("%v", err)
	}
}

func TestTheReportCountsSpellings(t *testing.T) {
	var in topic
	at := time.Duration(0)
	for _, id := range []string{"0A12C11D-71FA-4A2D-A02E-350EC8FC9E34",
		"0a12c11d-71fa-4a2d-a02e-350ec8fc9e34", `"0a12c11d71fa4a2da02e350ec8fc9e34"`, "order-1",
		" order-1", "order-2", "order-2", "ORDER-3"} {
		in.put(0, at, id, "v")
		at += time.Second
	}
	r := in.build(t, nil)
	if diff := cmp.Diff(Spellings{Share: 1, Sampled: 4, Several: 2}, r.IDs.Spellings); diff != "" {
		t.Error(diff)
	}
	if note := r.SpellingNote(); !strings.Contains(note, "2 of 4 IDs have more than one spelling") {
		t.Error(note)
	}
}

// A sample has all of an ID or nothing, and its share is that of the IDs.
func TestASampleIsAShareOfTheIDs(t *testing.T) {
	s := newIDSample[int](1000)
	random := rand.New(rand.NewPCG(3, 4))
	const ids = 50_000
	for range 3 * ids {
		id := dedup.ID(fmt.Sprint("id-", random.IntN(ids)))
		if s.has(id) {
			s.put(id, s.kept[id]+1)
		}
	}
	if len(s.kept) > 1000 || len(s.kept) < 400 {
		t.Errorf("%d IDs are kept", len(s.kept))
	}
	if got := float64(len(s.kept)) / s.share(); got < 0.8*ids || got > 1.2*ids {
		t.Errorf("%d IDs at a share of %v stand for %.0f", len(s.kept), s.share(), got)
	}
}
