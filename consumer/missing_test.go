package consumer

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/fence"
)

// The record at offset 3 has claimed its ID in a batch that was given back, and is gone. A copy of
// it must be told that the owner is gone for as long as the claim stands, by whose clock ever that
// ends.
func TestAMissingRecordIsRememberedUntilItsClaimHasEndedByEveryClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMember(Options{TTL: time.Hour, Limit: NewBatchLimit(10, 1<<20, time.Minute, nil),
			Metrics: NewCollectors(prometheus.NewRegistry()).For("in"),
			Logger:  slog.New(slog.DiscardHandler)})
		m.partitions[0] = newPartition(0)
		m.partitions[0].doubt(m.opts.Limit.Records())
		before := fence.Fence{}.Advance(fence.Span{Next: 3})
		commit := func(offset int64) *Batch {
			b := NewBatch(fetched(0, offset, 1, 100), only(before), "group", t.Context())
			m.noteMissingLocked(b)
			before = b.Spans[0].fence(before)
			return b
		}
		owner := Place{Partition: 0, Offset: 3}
		commit(4)
		time.Sleep(time.Hour + 2*time.Minute) // of the bubble
		commit(5)
		if !commit(6).Gone(0, owner, time.Time{}) {
			t.Error("two minutes after the ttl the owner is forgotten, and its copy is dropped")
		}
		time.Sleep(time.Hour) // of the bubble
		commit(7)
		if commit(8).Gone(0, owner, time.Time{}) {
			t.Error("the fence remembers for ever")
		}
	})
}

// Copies may renew the claim of the record that is gone, on other partitions, for as long as they
// like. What was missing before they did is kept as well.
func TestWhatIsMissingIsKeptWhileCopiesRenewItsClaims(t *testing.T) {
	for name, first := range map[string]time.Duration{"always": 0, "since then": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMember(Options{TTL: first,
					Limit:   NewBatchLimit(10, 1<<20, time.Minute, nil),
					Metrics: NewCollectors(prometheus.NewRegistry()).For("in"),
					Logger:  slog.New(slog.DiscardHandler)})
				m.partitions[0] = newPartition(0)
				m.partitions[0].doubt(m.opts.Limit.Records())
				before := fence.Fence{}.Advance(fence.Span{Next: 3})
				commit := func(offset int64) *Batch {
					b := NewBatch(fetched(0, offset, 1, 100), only(before), "group",
						t.Context())
					m.noteMissingLocked(b)
					before = b.Spans[0].fence(before)
					return b
				}
				commit(4)
				m.opts.TTL = 0
				m.partitions[0].unsure = 0
				commit(5)
				time.Sleep(10 * 365 * 24 * time.Hour) // of the bubble
				commit(6)
				owner := Place{Partition: 0, Offset: 3}
				if !commit(7).Gone(0, owner, time.Time{}) {
					t.Error("the owner is forgotten, and its copy is dropped")
				}
			})
		})
	}
}

// only is the fence of every partition.
func only(f fence.Fence) func(int32) fence.Fence {
	return func(int32) fence.Fence { return f }
}
