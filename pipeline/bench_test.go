package pipeline

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/forwarder"
	"github.com/kdedup/kdedup/lab/workload"
)

// BenchmarkPlan is what a lane does with a batch between the verdicts and the producer: it decides
// every record, copies those that go on, and counts.
func BenchmarkPlan(b *testing.B) {
	for name, every := range map[string]int{"10% copies": 10, "all copies": 1} {
		b.Run(name, func(b *testing.B) {
			batch, judgements := judged(every)
			l := &lane{
				topics: &forwarder.Topics{Output: "orders.clean", DeadLetter: "orders.dlq"},
				metrics: NewCollectors(prometheus.NewRegistry()).For("orders", 0).
					within(time.Hour, false),
			}
			forwarded := len(batch.Records) - len(batch.Records)/every
			b.ReportAllocs()
			for b.Loop() {
				p, err := l.plan(batch, judgements, nil, noTrace{})
				if err != nil || p.outgoing.Len() != forwarded {
					b.Fatal(p, err)
				}
				l.metrics.count(p, batch, noTrace{})
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(
				len(batch.Records)), "ns/record")
		})
	}
}

// judged is a batch of the default size in which every n-th record is a copy.
func judged(every int) (*consumer.Batch, []dedup.Judgement) {
	now := time.Now()
	spec := workload.Default()
	spec.Records, spec.Duplicates = 5000, 0
	batch := &consumer.Batch{}
	var judgements []dedup.Judgement
	spec.Each("orders", func(r *kgo.Record) bool {
		r.Offset, r.Timestamp = int64(len(judgements)), now
		j := dedup.Judgement{Verdict: dedup.VerdictFirst, ClaimedAt: now}
		if len(judgements)%every == 0 {
			j = dedup.Judgement{Verdict: dedup.VerdictDuplicate, ClaimedAt: now.Add(-time.Minute)}
		}
		batch.Records = append(batch.Records, consumer.Record{Record: r})
		judgements = append(judgements, j)
		return true
	})
	return batch, judgements
}
