package forwarder

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/lab/workload"
)

// acknowledged is a producer that does nothing: the client's own work is not measured.
type acknowledged struct{}

func (acknowledged) Produce(_ context.Context, r *kgo.Record, promise func(*kgo.Record, error)) {
	promise(r, nil)
}
func (acknowledged) Flush(context.Context) error { return nil }

// BenchmarkForward makes and sends the outgoing records of a batch of the default size.
func BenchmarkForward(b *testing.B) {
	spec := workload.Default()
	spec.Records = 5000
	var records []*kgo.Record
	spec.Each("orders", func(r *kgo.Record) bool {
		records = append(records, r)
		return true
	})
	topics := &Topics{Output: "orders.clean"}
	b.ReportAllocs()
	for b.Loop() {
		outgoing := topics.NewOutgoing(len(records))
		for _, r := range records {
			if !outgoing.Clean(r) {
				b.Fatal("a record does not fit")
			}
		}
		if err := outgoing.Send(b.Context(), acknowledged{}, Isolation{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(records)),
		"ns/record")
}
