package dedup

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/workload"
)

// benchBatch is one poll of the size that is the default.
const benchBatch = 5000

// benchMessages are what a lane polls: 200 bytes, a UUID in a header, one in ten a copy.
func benchMessages() []Message {
	spec := workload.Default()
	spec.Records = benchBatch
	var messages []Message
	spec.Each("orders", func(r *kgo.Record) bool {
		r.Offset = int64(len(messages))
		messages = append(messages, Message{Record: r,
			Owner: Coordinates{Partition: r.Partition, Offset: r.Offset, LeaderEpoch: 1}})
		return true
	})
	return messages
}

func benchDeduper(b *testing.B, store Claimer) *Deduper {
	b.Helper()
	extractor, err := NewExtractor(Source{From: "header", Name: workload.IDHeader})
	if err != nil {
		b.Fatal(err)
	}
	return New(Scope{}, store, Options{Extractor: extractor})
}

// perRecord adds what a batch costs for each of its records.
func perRecord(b *testing.B) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchBatch, "ns/record")
}

func BenchmarkExtract(b *testing.B) {
	order, err := json.Marshal(map[string]any{"order": map[string]any{
		"customer": "c-1029", "note": string(workload.Default().Value(1)[8:108]),
		"id": workload.Default().ID(1),
	}})
	if err != nil {
		b.Fatal(err)
	}
	record := &kgo.Record{
		Key: []byte("customer-1029"), Value: order,
		Headers: []kgo.RecordHeader{{Key: "traceparent", Value: []byte("00-1")},
			{Key: "message-id", Value: []byte(workload.Default().ID(1))}},
	}
	for _, source := range []Source{
		{From: "header", Name: "message-id"}, {From: "key"}, {From: "json", Path: "order.id"},
		{From: "value_hash"},
		{From: "composite", Parts: []Source{{From: "key"}, {From: "header", Name: "message-id"}}},
	} {
		b.Run(source.From, func(b *testing.B) {
			extractor, err := NewExtractor(source)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, missing := extractor.Extract(record); missing != NotMissing {
					b.Fatal(missing)
				}
			}
		})
	}
}

// BenchmarkFingerprint compares what counts: all, or fields of a JSON value of 500 bytes.
func BenchmarkFingerprint(b *testing.B) {
	value, err := json.Marshal(map[string]any{"ts_ms": 1_700_000_000_000, "op": "c",
		"source": map[string]any{"db": "shop", "table": "orders", "ts_ms": 1_700_000_000_000},
		"after": map[string]any{"id": 1029, "lines": []int{1, 2, 3, 4}, "total": "17.50",
			"note": strings.Repeat(string(workload.Default().Value(1)[8:108]), 3)}})
	if err != nil {
		b.Fatal(err)
	}
	record := &kgo.Record{Key: []byte("order-1029"), Value: value}
	for _, c := range []struct {
		name    string
		content Content
	}{{"all", Content{}}, {"none", Content{None: true}},
		{"ignore", Content{Ignore: []string{"ts_ms", "source.ts_ms"}}},
		{"only", Content{Only: []string{"after.id", "after.total"}}}} {
		b.Run(c.name, func(b *testing.B) {
			e, err := NewExtractor(Source{From: "key"})
			if err == nil {
				e, err = e.With(Rules{Fingerprint: c.content})
			}
			if err != nil {
				b.Fatal(err)
			}
			f := e.Fingerprinter()
			b.SetBytes(int64(len(value)))
			b.ReportAllocs()
			for b.Loop() {
				f.Of(record)
			}
		})
	}
}

// BenchmarkFold is what comes before the store: IDs, fingerprints, one claim for each ID.
func BenchmarkFold(b *testing.B) {
	messages, d := benchMessages(), benchDeduper(b, nil)
	b.ReportAllocs()
	for b.Loop() {
		if batch, _ := d.fold(messages); len(batch.claims) >= benchBatch {
			b.Fatal("nothing was folded")
		}
	}
	perRecord(b)
}

// BenchmarkVerdict is what comes after the store.
func BenchmarkVerdict(b *testing.B) {
	messages := benchMessages()
	batch, _ := benchDeduper(b, nil).fold(messages)
	answers, _ := applied(batch.claims)
	b.ReportAllocs()
	for b.Loop() {
		if judgements := batch.judge(messages, answers); judgements[0].Verdict != VerdictFirst {
			b.Fatal(judgements[0].Verdict)
		}
	}
	perRecord(b)
}

// ready answers at once: nothing of a store is measured.
type ready struct{ outcome Outcome }

func (r ready) Claim(_ context.Context, _ Scope, claims []Claim) ([]Answer, error) {
	answers, _ := applied(claims)
	for i := range answers {
		answers[i].Outcome, answers[i].ClaimedAt = r.outcome, time.Unix(1_700_000_000, 0)
		if r.outcome == Exists {
			answers[i].Owner.Offset += 1_000_000 // another record
		}
	}
	return answers, nil
}

// BenchmarkJudge is everything of this package but the store: for new messages and for
// copies of old ones.
func BenchmarkJudge(b *testing.B) {
	for name, c := range map[string]struct {
		outcome Outcome
		want    Verdict
	}{"new": {Applied, VerdictFirst}, "copies": {Exists, VerdictDuplicate}} {
		b.Run(name, func(b *testing.B) {
			messages, d := benchMessages(), benchDeduper(b, ready{c.outcome})
			b.ReportAllocs()
			for b.Loop() {
				judgements, err := d.Judge(b.Context(), messages)
				if err != nil || judgements[0].Verdict != c.want {
					b.Fatal(judgements[0].Verdict, err)
				}
			}
			perRecord(b)
		})
	}
}
