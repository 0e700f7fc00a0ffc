package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// unstable is how long transactions on a topic may stay open before it is read as it is.
	// Offsets are committed a little before the markers of their transaction are on the output.
	unstable     = 30 * time.Second
	askUnstable  = 50 * time.Millisecond
	silenceLimit = time.Minute
)

// Read calls each with every committed record of the topic until it returns false or the end is
// reached. Transactions that are just ending are waited for.
func Read(
	ctx context.Context, connection []kgo.Opt, topic string, each func(*kgo.Record) bool,
) error {
	client, err := kgo.NewClient(append(slices.Clip(connection), kgo.ConsumeTopics(topic),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords())...) // the end may be a marker
	if err != nil {
		return fmt.Errorf("read %s: %w", topic, err)
	}
	defer client.Close()
	open, err := stableEnds(ctx, kadm.NewClient(client), topic)
	if err != nil {
		return fmt.Errorf("read %s: %w", topic, err)
	}
	for len(open) > 0 {
		fetches, err := poll(ctx, client)
		if err != nil {
			return fmt.Errorf("read %s: %w", topic, err)
		}
		for _, r := range fetches.Records() {
			end, ok := open[r.Partition]
			if ok && r.Offset < end && !r.Attrs.IsControl() && !each(r) {
				return nil
			}
			if r.Offset+1 >= end {
				delete(open, r.Partition)
			}
		}
	}
	return nil
}

func poll(ctx context.Context, client *kgo.Client) (kgo.Fetches, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, silenceLimit,
		fmt.Errorf("no record for %v", silenceLimit))
	defer cancel()
	fetches := client.PollFetches(ctx)
	if fetches.Err0() != nil {
		return nil, errors.Join(fetches.Err0(), context.Cause(ctx))
	}
	return fetches, nil
}

// stableEnds returns the end of each partition that is not empty, when no transaction is open there
// any more.
func stableEnds(ctx context.Context, admin *kadm.Client, topic string) (map[int32]int64, error) {
	for giveUp := time.Now().Add(unstable); ; {
		stable, err := admin.ListCommittedOffsets(ctx, topic)
		if err = errors.Join(err, stable.Error()); err != nil {
			return nil, err
		}
		ends, err := admin.ListEndOffsets(ctx, topic)
		if err = errors.Join(err, ends.Error()); err != nil {
			return nil, err
		}
		if found, settled := compareEnds(topic, stable, ends); settled || time.Now().After(giveUp) {
			return found, nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(askUnstable):
		}
	}
}

func compareEnds(
	topic string, stable, ends kadm.ListedOffsets,
) (found map[int32]int64, settled bool) {
	found, settled = make(map[int32]int64), true
	ends.Each(func(end kadm.ListedOffset) {
		at, ok := stable.Lookup(topic, end.Partition)
		settled = settled && ok && at.Offset == end.Offset
		if at.Offset > 0 {
			found[end.Partition] = at.Offset
		}
	})
	return found, settled
}
