package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/fence"
	"github.com/kdedup/kdedup/internal/brokers"
)

// nextTimeout is how long Next waits for a record.
const nextTimeout = 15 * time.Second

// Next returns the first record of a partition that the group has not handled, and the ID of the
// input. The connection is that of another client, which it makes.
func (g Group) Next(
	ctx context.Context, client *kgo.Client, connection []kgo.Opt, partition int32,
) (*kgo.Record, [16]byte, error) {
	var none [16]byte
	found, err := g.fences(ctx, client, []int32{partition}, fence.Patience)
	if err != nil {
		return nil, none, err
	}
	begin, _ := found.Begin(partition)
	at := begin.Next()
	if at == 0 {
		committed, err := brokers.Offsets(ctx, kadm.NewClient(client), g.Name, g.Grouped())
		if err != nil {
			return nil, none, err
		}
		if o, known := committed[partition]; known {
			at = max(0, o.At)
		}
	}
	reader, err := kgo.NewClient(append(connection, kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
			g.Input: {partition: kgo.NewOffset().At(at).WithEpoch(
				found.Fences[partition].EpochBelow(found.Input))}}))...)
	if err != nil {
		return nil, none, err
	}
	defer reader.Close()
	ctx, cancel := context.WithTimeout(ctx, nextTimeout)
	defer cancel()
	for ctx.Err() == nil {
		fetches := reader.PollRecords(ctx, 1)
		if records := fetches.Records(); len(records) > 0 {
			return records[0], found.Input, nil
		}
		// Where the log was cut below the fence, the reader says so, and goes back.
		var cut *kgo.ErrDataLoss
		if err := fetches.Err(); err != nil && ctx.Err() == nil && !errors.As(err, &cut) {
			return nil, none, fmt.Errorf("read %s[%d] at offset %d: %w", g.Input, partition, at,
				err)
		}
	}
	return nil, none,
		fmt.Errorf("%s[%d] has no record at offset %d or behind it: nothing waits there", g.Input,
			partition, at)
}

// Skip tells the lanes of the group what is to become of a record, which they read before they try
// it again.
func (g Group) Skip(ctx context.Context, client *kgo.Client, partition int32, s fence.Skip) error {
	if err := client.ProduceSync(
		ctx, fence.SkipRecord(g.FenceTopic, g.Input, partition, s),
	).FirstErr(); err != nil {
		return fmt.Errorf("write to %s: %w", g.FenceTopic, err)
	}
	return nil
}
