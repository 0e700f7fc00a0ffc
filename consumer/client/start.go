package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/fence"
	"github.com/kdedup/kdedup/internal/pause"
)

// PinStart writes down where a new group begins with start: latest. Without it, every partition
// that has no commit yet would begin at its end again after each restart, and skip what came in
// between. Partitions that have a commit keep it. One that has a fence is not new: its commit has
// expired, or the group was renamed, and it begins at the fence. PinStart is called before the
// group is joined; while other members are active the group has been pinned by them.
func PinStart(
	ctx context.Context, client *kgo.Client, group, topic, fenceTopic string, earlier Earlier,
) error {
	// On a new cluster the topic of the groups' offsets is made by the first request for it.
	err := pause.Repeat(ctx, retryStart, kerr.IsRetriable, func() error {
		return pinStart(ctx, client, group, topic, fenceTopic, earlier)
	})
	if err != nil {
		return fmt.Errorf("pin the start of %s: %w", group, err)
	}
	return nil
}

const retryStart = 250 * time.Millisecond

func pinStart(
	ctx context.Context, client *kgo.Client, group, topic, fenceTopic string, earlier Earlier,
) error {
	admin := kadm.NewClient(client)
	have, err := admin.FetchOffsetsForTopics(kadm.RequireStable(ctx), group, topic)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return fmt.Errorf("fetch offsets: %w", err)
	}
	ends, err := admin.ListCommittedOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return fmt.Errorf("list the end of %s: %w", topic, err)
	}
	var open []int32
	for _, end := range ends[topic] {
		committed, ok := have.Lookup(topic, end.Partition)
		if committed.Err != nil { // a transaction is still ending: its offset must not be overtaken
			return fmt.Errorf("offset of partition %d: %w", end.Partition, committed.Err)
		}
		if !ok || committed.At < 0 {
			open = append(open, end.Partition)
		}
	}
	if len(open) == 0 {
		return nil
	}
	found, err := fence.Read(ctx, client, fenceTopic, topic, open, fence.Patience)
	if err == nil {
		err = earlier.add(ctx, client, topic, open, found, fence.Patience)
	}
	if err != nil {
		return err
	}
	pins := make(kadm.Offsets)
	for _, p := range open {
		if f := found.Fences[p]; f.Next() > 0 && f.Of(found.Input) {
			pins.Add(kadm.Offset{Topic: topic, Partition: p, At: f.Next(), LeaderEpoch: -1,
				Metadata: mark})
			continue
		}
		end := ends[topic][p]
		pins.Add(kadm.Offset{Topic: topic, Partition: p, At: end.Offset,
			LeaderEpoch: end.LeaderEpoch, Metadata: mark})
	}
	err = admin.CommitAllOffsets(ctx, group, pins)
	if err != nil && !errors.Is(err, kerr.UnknownMemberID) &&
		!errors.Is(err, kerr.RebalanceInProgress) {
		return fmt.Errorf("commit offsets: %w", err)
	}
	return nil
}
