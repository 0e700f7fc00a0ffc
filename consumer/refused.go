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

// stillAlone returns nil if nobody else has committed offsets of this session's partitions since it began with them. It waits
// for the markers of a transaction that is still ending, that of the batch for example.
func (t *Transactional) stillAlone(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, transactionTimeout)
	defer cancel()
	unstable := func(err error) bool { return errors.Is(err, kerr.UnstableOffsetCommit) }
	return repeat(ctx, retryUnstable, unstable, func() error { return t.compareOffsets(ctx) })
}

// compareOffsets looks at all partitions: who has gone on with one of them goes on with the others next.
func (t *Transactional) compareOffsets(ctx context.Context) error {
	offsets, err := kadm.NewClient(t.client).FetchOffsetsForTopics(kadm.RequireStable(ctx), t.opts.ConsumerGroup, t.opts.Input)
	if err != nil {
		return fmt.Errorf("fetch offsets: %w", err)
	}
	client := t.client.CommittedOffsets()[t.opts.Input]
	for _, p := range t.owned() {
		mine, known := t.position(client, p)
		at, ok := offsets.Lookup(t.opts.Input, p)
		switch {
		case !known:
		case !ok:
			return fmt.Errorf("no offset of partition %d: %w", p, errGoneOn)
		case at.Err != nil:
			return fmt.Errorf("offset of partition %d: %w", p, at.Err)
		case at.At > mine:
			return fmt.Errorf("partition %d is at %d, not at %d: %w", p, at.At, mine, errGoneOn)
		}
	}
	return nil
}

var errGoneOn = errors.New("the group has gone on without this member")
