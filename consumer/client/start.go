package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/pause"
)

// Start is how a group begins that starts at the end.
type Start struct {
	// Ends are those of the input at the first start, if that was before now: a partition that is
	// not among them begins at its beginning. Nil: they are as the brokers tell them now.
	Ends map[int32]kadm.ListedOffset
	// Skips is told of each range of offsets that is not read, once it is decided.
	Skips func(partition int32, from, to int64)
}

// Writes are the options of a client that writes starts. Written twice they say the same, and some
// brokers have no idempotent producers.
func Writes() []kgo.Opt {
	return []kgo.Opt{kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DisableIdempotentWrite()}
}

// PinStart decides where a group with start: latest begins, once: at the ends that the partitions
// have at its first start. It writes that down as starts in the fence topic, which outlive the
// group's offsets, and in the offsets. Later starts go by what is written. A partition of which
// nothing is written came later, and begins at its beginning. PinStart is called before the group
// is joined, with a client that has the options Writes.
func (g Group) PinStart(ctx context.Context, client *kgo.Client, s Start) error {
	// On a new cluster the topic of the groups' offsets is made by the first request for it.
	err := pause.Repeat(ctx, retryStart, kerr.IsRetriable, func() error {
		return g.pinStart(ctx, client, s)
	})
	if err != nil {
		return fmt.Errorf("pin the start of %s: %w", g.Name, err)
	}
	return nil
}

const retryStart = 250 * time.Millisecond

func (g Group) pinStart(ctx context.Context, client *kgo.Client, s Start) error {
	sight, err := g.lookAtStart(ctx, client)
	if err != nil {
		return err
	}
	first := !sight.began()
	if s.Ends != nil {
		sight.ends = s.Ends
	}
	starts, offsets := sight.decide(g, first)
	if err := g.writeStarts(ctx, client, starts); err != nil {
		return err
	}
	if first {
		if err := g.agree(ctx, client, starts, offsets); err != nil {
			return err
		}
		for _, p := range slices.Sorted(maps.Keys(starts)) {
			from, to := sight.begins[p].Offset, starts[p].Next()
			if from < to && sight.open(p) {
				s.Skips(p, from, to)
			}
		}
	}
	if len(offsets[g.Grouped()]) == 0 {
		return nil
	}
	err = kadm.NewClient(client).CommitAllOffsets(ctx, g.Name, offsets)
	// while other members are active, they have been pinned by them
	if err != nil && !errors.Is(err, kerr.UnknownMemberID) &&
		!errors.Is(err, kerr.RebalanceInProgress) {
		return fmt.Errorf("commit offsets: %w", err)
	}
	return nil
}
