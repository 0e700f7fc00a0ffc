package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// errRefused says that the group's coordinator did not take the offsets of a batch: it has another generation in mind,
// moves, or cannot tell. Usually a rebalance has begun, and the batch can be given back. But the group may also have given
// this member up, and others have gone on with its partitions; until the client hears of that, it would poll what
// they have handled, and claim it.
var errRefused = errors.New("the offsets were refused")

func isRefusal(err error) bool {
	for _, refusal := range []error{
		kerr.IllegalGeneration, kerr.UnknownMemberID, kerr.StaleMemberEpoch, kerr.GroupIDNotFound, kerr.RebalanceInProgress,
		kerr.CoordinatorNotAvailable, kerr.CoordinatorLoadInProgress, kerr.NotCoordinator,
		kerr.ConcurrentTransactions, kerr.UnknownServerError, kerr.TransactionAbortable,
	} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}

const retryUnstable = 20 * time.Millisecond

// stillBefore returns nil if the group's offsets are not behind the begin of the batch, which is not in a transaction any more:
// whoever went on may have handled a part of it. It waits for the markers of a transaction that is still ending, that of
// the batch for example.
func (t *Transactional) stillBefore(ctx context.Context, b *Batch) error {
	ctx, cancel := context.WithTimeout(ctx, transactionTimeout)
	defer cancel()
	unstable := func(err error) bool { return errors.Is(err, kerr.UnstableOffsetCommit) }
	return repeat(ctx, retryUnstable, unstable, func() error { return t.compareOffsets(ctx, b) })
}

func (t *Transactional) compareOffsets(ctx context.Context, b *Batch) error {
	offsets, err := kadm.NewClient(t.client).FetchOffsetsForTopics(kadm.RequireStable(ctx), t.opts.ConsumerGroup, t.opts.Input)
	if err != nil {
		return fmt.Errorf("fetch offsets: %w", err)
	}
	for _, s := range b.Spans {
		at, ok := offsets.Lookup(t.opts.Input, s.Partition)
		switch {
		case !ok:
			return fmt.Errorf("no offset of partition %d: %w", s.Partition, errGoneOn)
		case at.Err != nil:
			return fmt.Errorf("offset of partition %d: %w", s.Partition, at.Err)
		case at.At > s.First:
			return fmt.Errorf("partition %d is at %d: %w", s.Partition, at.At, errGoneOn)
		}
	}
	return nil
}

var errGoneOn = errors.New("the group has gone on without this member")
