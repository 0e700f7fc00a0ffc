package dedup_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
	"github.com/kdedup/kdedup/lab/workload"
)

// benchBatch is one poll of the size that is the default.
const benchBatch = 5000

// benchMessages are what a lane polls: 200 bytes, a UUID in a header, one in ten a copy.
func benchMessages() []dedup.Message {
	spec := workload.Default()
	spec.Records = benchBatch
	var messages []dedup.Message
	spec.Each("orders", func(r *kgo.Record) bool {
		r.Offset = int64(len(messages))
		messages = append(messages, dedup.Message{Record: r,
			Owner: dedup.Coordinates{Partition: r.Partition, Offset: r.Offset, LeaderEpoch: 1}})
		return true
	})
	return messages
}

func benchDeduper(b *testing.B, store dedup.Claimer) *dedup.Deduper {
	b.Helper()
	extractor, err := messageid.New(messageid.Source{From: "header", Name: workload.IDHeader})
	if err != nil {
		b.Fatal(err)
	}
	return dedup.New(dedup.Scope{}, store, dedup.Options{Extractor: extractor})
}

// perRecord adds what a batch costs for each of its records.
func perRecord(b *testing.B) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchBatch, "ns/record")
}

// BenchmarkFold is what comes before the store: IDs, fingerprints, one claim for each ID.
func BenchmarkFold(b *testing.B) {
	messages, d := benchMessages(), benchDeduper(b, nil)
	b.ReportAllocs()
	for b.Loop() {
		if claims := d.Fold(messages); len(claims) >= benchBatch {
			b.Fatal("nothing was folded")
		}
	}
	perRecord(b)
}

// BenchmarkVerdict is what comes after the store.
func BenchmarkVerdict(b *testing.B) {
	messages := benchMessages()
	d := benchDeduper(b, nil)
	answers, _ := ready{dedup.Applied}.Claim(b.Context(), dedup.Scope{}, d.Fold(messages))
	b.ReportAllocs()
	for b.Loop() {
		judgements := d.Verdicts(messages, answers)
		if judgements[0].Verdict != dedup.VerdictFirst {
			b.Fatal(judgements[0].Verdict)
		}
	}
	perRecord(b)
}

// ready answers at once: nothing of a store is measured.
type ready struct{ outcome dedup.Outcome }

func (r ready) Claim(
	_ context.Context, _ dedup.Scope, claims []dedup.Claim,
) ([]dedup.Answer, error) {
	answers := make([]dedup.Answer, len(claims))
	for i, c := range claims {
		answers[i] = dedup.Answer{Outcome: r.outcome, Owner: c.Owner, Fingerprint: c.Fingerprint,
			ClaimedAt: time.Unix(1_700_000_000, 0)}
		if r.outcome == dedup.Exists {
			answers[i].Owner.Offset += 1_000_000 // another record
		}
	}
	return answers, nil
}

// BenchmarkJudge is everything of this package but the store: for new messages and for
// copies of old ones.
func BenchmarkJudge(b *testing.B) {
	for name, c := range map[string]struct {
		outcome dedup.Outcome
		want    dedup.Verdict
	}{
		"new":    {dedup.Applied, dedup.VerdictFirst},
		"copies": {dedup.Exists, dedup.VerdictDuplicate},
	} {
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
