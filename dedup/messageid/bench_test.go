package messageid_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
	"github.com/kdedup/kdedup/lab/workload"
)

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
	for _, source := range []messageid.Source{
		{From: "header", Name: "message-id"}, {From: "key"}, {From: "json", Path: "order.id"},
		{From: "value_hash"},
		{From: "composite", Parts: []messageid.Source{{From: "key"},
			{From: "header", Name: "message-id"}}},
	} {
		b.Run(source.From, func(b *testing.B) {
			extractor, err := messageid.New(source)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, missing := extractor.Extract(record); missing != dedup.NotMissing {
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
		content messageid.Content
	}{{"all", messageid.Content{}}, {"none", messageid.Content{None: true}},
		{"ignore", messageid.Content{Ignore: []string{"ts_ms", "source.ts_ms"}}},
		{"only", messageid.Content{Only: []string{"after.id", "after.total"}}}} {
		b.Run(c.name, func(b *testing.B) {
			e, err := messageid.New(messageid.Source{From: "key"})
			if err == nil {
				e, err = e.With(messageid.Rules{Fingerprint: c.content})
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
