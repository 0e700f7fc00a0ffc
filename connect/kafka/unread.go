package kafka

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/internal/brokers"
)

// OldUnread lists the partitions of the input on which the oldest record that the group has not
// read is older than age, by its timestamp.
func OldUnread(
	ctx context.Context, client *kgo.Client, t config.Topic, age time.Duration,
) ([]int32, error) {
	admin := kadm.NewClient(client)
	committed, err := brokers.Offsets(ctx, admin, t.ConsumerGroup, t.Input)
	if err != nil {
		return nil, err
	}
	starts, err := admin.ListStartOffsets(ctx, t.Input)
	if err != nil {
		return nil, fmt.Errorf("read the start of %s: %w", t.Input, err)
	}
	younger, err := admin.ListOffsetsAfterMilli(ctx, time.Now().Add(-age).UnixMilli(), t.Input)
	if err != nil {
		return nil, fmt.Errorf("look for young records of %s: %w", t.Input, err)
	}
	var old []int32
	younger.Each(func(o kadm.ListedOffset) {
		next, ok := committed[o.Partition]
		if !ok {
			next.At = -1
		}
		if start, _ := starts.Lookup(o.Topic, o.Partition); next.At >= 0 ||
			t.Start == config.StartEarliest {
			next.At = max(next.At, start.Offset)
		}
		if o.Err == nil && next.At >= 0 && next.At < o.Offset {
			old = append(old, o.Partition)
		}
	})
	slices.Sort(old)
	return old, nil
}
