package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
)

// effect is what is done with a message, once.
type effect func(ctx context.Context, order *kgo.Record) error

// consumer is one member of the group.
type consumer struct {
	client  *kgo.Client
	deduper *dedup.Deduper
	ship    effect
	records int // to end after; 0: never

	read, shipped, copies int
}

// A larger batch claims and commits more at a time, and repeats more after a crash.
const batchRecords = 500

// run takes batch after batch. After an error nothing more is committed: the next owner of the
// partitions gets the batch again, and knows its own claims.
func (c *consumer) run(ctx context.Context) error {
	for ctx.Err() == nil && (c.records == 0 || c.read < c.records) {
		if err := c.turn(ctx); err != nil {
			return err
		}
	}
	return nil
}

// turn takes one batch all the way: claim, ship, commit, in this order. When the context ends
// before the batch is claimed, it comes again.
func (c *consumer) turn(ctx context.Context) error {
	fetches := c.client.PollRecords(ctx, batchRecords)
	defer c.client.AllowRebalance()
	if ctx.Err() != nil {
		return nil
	}
	if err := fetches.Err(); err != nil {
		return fmt.Errorf("poll: %w", err)
	}
	messages := dedup.Messages(fetches)
	judgements, err := c.deduper.Judge(ctx, messages) // waits while the store does not answer
	if err != nil {
		return nil // the context's
	}
	// A batch that is begun is ended, so that a restart repeats nothing; but not for ever.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	for i := range messages {
		if err := c.act(ctx, messages[i].Record, judgements[i]); err != nil {
			return fmt.Errorf("record %d/%d: %w", messages[i].Record.Partition,
				messages[i].Record.Offset, err)
		}
	}
	if err := c.client.CommitUncommittedOffsets(ctx); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	c.read += len(messages)
	return nil
}

// act does what the verdict says. Without a fence, and with a retry that never gives up, there are
// no replays and nothing is unclaimed.
func (c *consumer) act(ctx context.Context, order *kgo.Record, j dedup.Judgement) error {
	switch j.Verdict {
	case dedup.VerdictDuplicate:
		c.copies++
		return nil
	case dedup.VerdictConflict: // the ID is another order's
		slog.Error("not shipped: another order has this ID",
			"partition", order.Partition, "offset", order.Offset,
			"owner_partition", j.Owner.Partition, "owner_offset", j.Owner.Offset)
		return nil
	case dedup.VerdictMissing: // shipped: nobody can say that it is a copy
		slog.Warn("an order has no ID", "partition", order.Partition, "offset", order.Offset,
			"reason", j.Missing)
	}
	// First, or mine: this record claimed its ID before a crash, maybe before it was shipped.
	if err := c.ship(ctx, order); err != nil {
		return fmt.Errorf("ship: %w", err)
	}
	c.shipped++
	return nil
}
