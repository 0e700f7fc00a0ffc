package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// PinStart writes down where a new group begins with start: latest. Without it, every partition
// that has no commit yet would begin at its end again after each restart, and skip what came in
// between. Partitions that have a commit keep it. It is called before the group is joined; while
// other members are active the group has been pinned by them.
func PinStart(ctx context.Context, client *kgo.Client, group, topic string) error {
	// On a new cluster the topic of the groups' offsets is made by the first request for it.
	return repeat(ctx, retryStart, kerr.IsRetriable, func() error { return pinStart(ctx, client, group, topic) })
}

const retryStart = 250 * time.Millisecond

func pinStart(ctx context.Context, client *kgo.Client, group, topic string) error {
	admin := kadm.NewClient(client)
	have, err := admin.FetchOffsetsForTopics(kadm.RequireStable(ctx), group, topic)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return fmt.Errorf("pin the start of %s: fetch offsets: %w", group, err)
	}
	ends, err := admin.ListCommittedOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return fmt.Errorf("pin the start of %s: list the end of %s: %w", group, topic, err)
	}
	pins := make(kadm.Offsets)
	for _, end := range ends[topic] {
		committed, ok := have.Lookup(topic, end.Partition)
		if committed.Err != nil { // a transaction is still ending: its offset must not be overtaken
			return fmt.Errorf("pin the start of %s: offset of partition %d: %w", group, end.Partition, committed.Err)
		}
		if !ok || committed.At < 0 {
			pins.AddOffset(topic, end.Partition, end.Offset, end.LeaderEpoch)
		}
	}
	if len(pins) == 0 {
		return nil
	}
	err = admin.CommitAllOffsets(ctx, group, pins)
	if err != nil && !errors.Is(err, kerr.UnknownMemberID) && !errors.Is(err, kerr.RebalanceInProgress) {
		return fmt.Errorf("pin the start of %s: commit offsets: %w", group, err)
	}
	return nil
}
