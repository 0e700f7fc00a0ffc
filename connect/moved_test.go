package connect

import (
	"errors"
	"testing"
	"time"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/dedup/memory"
	"github.com/kdedup/kdedup/fence"
)

// What the other store handles after the move, this one does not know: a lane that goes on there
// would forward copies.
func TestANewStoreStandsForTheOldOneUpToItsFences(t *testing.T) {
	now := time.Now()
	topic := [16]byte{1}
	at := func(next int64, epoch int32, claimed time.Time) fence.Fence {
		return fence.Fence{}.Advance(fence.Span{TopicID: topic, Next: next, LeaderEpoch: epoch,
			Claimed: claimed, Group: "g", Now: now}).In("old")
	}
	k := Knowledge{store: memory.New(memory.Options{}), Name: "the new store"}
	e := Entry{Topic: config.Topic{Input: "orders", Scope: "orders", ScopeGroup: "g",
		TTL: time.Hour, Buckets: 1, MessageID: config.MessageID{From: "key"}}}
	var err error
	if e.Extractor, err = ExtractorOf(e.Topic, nil); err != nil {
		t.Fatal(err)
	}
	var h Handled
	h.Add(0, at(100, 3, now))
	h.Add(7, at(5, 3, now.Add(-time.Minute)))
	if err := DeclareHandled(t.Context(), k.store, &e, "old", h); err != nil {
		t.Fatal(err)
	}
	foreign := at(100, 3, now)
	foreign.TopicID = [16]byte{2}
	for name, row := range map[string]struct {
		partition int32
		fence     fence.Fence
		known     bool
	}{
		"the fence of the move":         {0, at(100, 3, now), true},
		"an earlier one":                {0, at(99, 2, now.Add(-time.Second)), true},
		"another partition's":           {7, at(100, 3, now), false},
		"one more record":               {0, at(101, 3, now), false},
		"a later epoch":                 {0, at(50, 4, now), false},
		"a later claim":                 {0, at(100, 3, now.Add(time.Millisecond)), false},
		"a partition without fence":     {1, at(1, 0, now), false},
		"another topic of the name":     {0, foreign, false},
		"another store":                 {0, at(100, 3, now).In("third"), false},
		"a partition that stands still": {7, at(5, 3, now.Add(-time.Minute)), true},
	} {
		t.Run(name, func(t *testing.T) {
			err := k.CheckFence(t.Context(), e, row.partition, row.fence)
			if known := err == nil; known != row.known || !known && !errors.Is(err, errUnknowing) {
				t.Errorf("known: %t, %v", known, err)
			}
		})
	}
	h.Add(0, at(200, 4, now))
	if err := DeclareHandled(t.Context(), k.store, &e, "old", h); err != nil {
		t.Fatal(err)
	}
	if err := k.CheckFence(t.Context(), e, 0, at(150, 4, now)); err != nil {
		t.Errorf("after another move: %v", err)
	}
}
