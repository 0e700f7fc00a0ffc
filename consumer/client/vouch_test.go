package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/fence"
	"github.com/kdedup/kdedup/internal/testkit"
)

func TestAMarkVouchesForItsOwnPlaceAlone(t *testing.T) {
	seed := rand.Uint64()
	dice := rand.New(rand.NewPCG(seed, 0))
	draw := func() place {
		pick := func(texts ...string) string { return texts[dice.IntN(len(texts))] }
		return place{pick("", "lkc-1", "MkU3OEVBNTcwNTJENDM2Qg"),
			[16]byte{byte(dice.IntN(3))}, pick("a", "b", "a b", "", " ", "-", "kdedup:2 - a")}
	}
	for range 20_000 {
		a, b := draw(), draw()
		same := a.group == b.group && fence.SameTopic(a.topicID, b.topicID) &&
			(a.cluster == b.cluster || a.cluster == "" || b.cluster == "")
		if got := b.vouches(a.mark()); got != same {
			t.Fatalf("seed %d: the mark %q of %+v vouches for %+v: %v", seed, a.mark(), a, b, got)
		}
		for _, text := range []string{"", earlierMark, "kdedup:2", a.mark()[:dice.IntN(40)],
			strings.ToUpper(a.mark()), "x" + a.mark()} {
			if (place{group: text}).vouches(text) {
				t.Fatalf("%q is a mark", text)
			}
		}
	}
}

// MirrorMaker's sync.group.offsets copies offsets with their texts, and so do tools that save and
// restore them. What is copied is other places' word.
func TestCopiedMarksAreWorthNothing(t *testing.T) {
	testkit.Kafkas(t, 3, func(t *testing.T, brokers []string) {
		for name, c := range map[string]struct {
			mark    func(here place) string
			fence   bool // of the other partition
			earlier bool // what is asked if the store does not know this cluster
			refused bool
		}{
			"its own":          {mark: place.mark},
			"its own, fenced":  {mark: place.mark, fence: true},
			"its own, earlier": {mark: place.mark, earlier: true},
			"another cluster": {mark: func(p place) string {
				p.cluster = "other"
				return p.mark()
			}, refused: true},
			"another cluster, and other partitions have fences": {mark: func(p place) string {
				p.cluster = "other"
				return p.mark()
			}, fence: true, refused: true},
			"a topic of the name that is gone": {mark: func(p place) string {
				p.topicID[3]++
				return p.mark()
			}, refused: true},
			"another group": {mark: func(p place) string {
				p.group += "-2"
				return p.mark()
			}, refused: true},
			"of a version before the place": {mark: func(place) string { return earlierMark }},
			"of a version before the place, in a store that is new": {
				mark: func(place) string { return earlierMark }, earlier: true, refused: true},
			"of a version before the place, where fences agree": {
				mark: func(place) string { return earlierMark }, earlier: true, fence: true},
		} {
			t.Run(name, func(t *testing.T) {
				for _, fromEnd := range []bool{false, true} {
					u := newUsed(t, brokers, fromEnd)
					here, err := u.group.place(t.Context(), u.admin)
					if err != nil {
						t.Fatal(err)
					}
					copied := make(kadm.Offsets)
					copied.Add(kadm.Offset{Topic: u.group.Input, Partition: 1, At: 8,
						LeaderEpoch: -1, Metadata: c.mark(here)})
					if err := u.admin.CommitAllOffsets(t.Context(), u.group.Name,
						copied); err != nil {
						t.Fatal(err)
					}
					if c.fence {
						u.fence(0, 8, u.group.Name)
					}
					u.mustRefuse(c.earlier, c.refused)
				}
			})
		}
	})
}

// mustRefuse looks at the offsets as a start does, and adopts them if they are refused.
func (u *used) mustRefuse(earlier, refused bool) {
	u.t.Helper()
	check := u.group.Check
	if earlier {
		check = u.group.CheckEarlier
	}
	err := check(u.t.Context(), u.client)
	if !refused {
		if err != nil {
			u.t.Error(err)
		}
		return
	}
	for _, want := range []string{"[1] at 8", "copied", "--adopt-offsets"} {
		if !errors.Is(err, consumer.ErrStrangeOffsets) || !strings.Contains(err.Error(), want) {
			u.t.Errorf("got %v, want a refusal with %q", err, want)
		}
	}
	if err := u.group.Adopt(u.t.Context(), u.client, false, func(string) {}); err != nil {
		u.t.Fatal(err)
	}
	for _, check := range []func(context.Context) error{
		func(ctx context.Context) error { return u.group.Check(ctx, u.client) },
		func(ctx context.Context) error { return u.group.CheckEarlier(ctx, u.client) },
	} {
		if err := check(u.t.Context()); err != nil {
			u.t.Errorf("after they were adopted: %v", err)
		}
	}
}
