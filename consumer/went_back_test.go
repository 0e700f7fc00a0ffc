package consumer

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/fence"
)

// A client may go back in the log at any time, also between the fetches of one batch: its broker
// has told that the log was cut, or where it begins. Each record is handled once all the same, and
// the fence never says less than what was committed.
func TestAClientThatGoesBackAtAnyTimeHasNoRecordHandledTwice(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1))
		m := memberOf(t, 0)
		var (
			log     = randomLog(random, 60)
			handled = make(map[int64]int)
			at      = 0
		)
		for at < len(log) {
			fetches, next := fetchesFrom(random, log, at)
			if fetches.NumRecords() == 0 {
				at = next
				continue
			}
			batch := NewBatch(fetches, m.fenceLocked, "group", t.Context())
			if random.IntN(3) == 0 { // it is given back
				at = slices.IndexFunc(log, func(r *kgo.Record) bool {
					return r.Offset >= batch.Spans[0].First
				})
				continue
			}
			before := m.fenceLocked(0)
			for _, r := range batch.Records {
				if !before.Covers(r.TopicID, r.Offset, r.LeaderEpoch) {
					handled[r.Offset]++
				}
			}
			m.settle(batch)
			at = next
		}
		for _, r := range log {
			if n := handled[r.Offset]; n != 1 {
				t.Fatalf("seed %d: the record at offset %d was handled %d times", seed, r.Offset, n)
			}
		}
		last := log[len(log)-1]
		if f := m.fenceLocked(0); f.Next() != last.Offset+1 || f.LeaderEpoch != last.LeaderEpoch {
			t.Fatalf("seed %d: the fence ends at %d in epoch %d, want %d in %d", seed, f.Next(),
				f.LeaderEpoch, last.Offset+1, last.LeaderEpoch)
		}
	}
}

// randomLog has gaps, and leaders that change.
func randomLog(random *rand.Rand, records int) (log []*kgo.Record) {
	offset, epoch := int64(0), int32(0)
	for range records {
		if random.IntN(5) == 0 {
			offset += random.Int64N(4)
		}
		if random.IntN(10) == 0 {
			epoch++
		}
		log = append(log, &kgo.Record{Topic: "orders", Offset: offset, LeaderEpoch: epoch})
		offset++
	}
	return log
}

// fetchesFrom are those of one batch, of a client that may go back before each. It stands at next
// then.
func fetchesFrom(random *rand.Rand, log []*kgo.Record, at int) (fetches kgo.Fetches, next int) {
	next = at
	for range 1 + random.IntN(4) {
		if random.IntN(4) == 0 {
			next = random.IntN(next + 1)
		}
		n := min(random.IntN(12), len(log)-next)
		fetches = append(fetches, fetchOf(log[next:next+n])...)
		next += n
	}
	return fetches, next
}

func fetchOf(records []*kgo.Record) kgo.Fetches {
	return kgo.Fetches{{Topics: []kgo.FetchTopic{{Topic: "orders",
		Partitions: []kgo.FetchPartition{{Records: slices.Clone(records)}}}}}}
}

// With the records of the first fetch between those of the second, nothing is missing.
func TestWhatABatchHasAlreadyIsNotMissingFromIt(t *testing.T) {
	var log []*kgo.Record
	for offset := range int64(30) {
		log = append(log, &kgo.Record{Topic: "orders", Offset: offset})
	}
	handled := fence.Fence{}.Advance(fence.Span{Next: 10})
	batch := NewBatch(slices.Concat(fetchOf(log[10:20]), fetchOf(log[0:30])),
		func(int32) fence.Fence { return handled }, "group", t.Context())
	for _, s := range batch.Spans {
		if len(s.missing) > 0 {
			t.Errorf("%v is missing from %d to %d", s.missing, s.First, s.Next)
		}
	}
	if n := len(batch.Records); n != 30 {
		t.Errorf("the batch has %d records, want each of 30 once", n)
	}
}
