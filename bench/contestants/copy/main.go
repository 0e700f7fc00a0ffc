// Command copy forwards every record, without looking at it: what Kafka and its client can do here.
package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/bench/contestants/member"
)

func main() {
	o := member.Flags(20_000, 2)
	transactions := flag.Bool("transactions", false,
		"one transaction for the records and the offsets of each poll")
	flag.Parse()
	c := &copier{o}
	o.Main(func(ctx context.Context, member int) error {
		if *transactions {
			return c.exactlyOnce(ctx, member)
		}
		return o.AtLeastOnce(ctx, c.forward)
	})
}

type copier struct{ *member.Options }

func (c *copier) forward(ctx context.Context, client *kgo.Client, records []*kgo.Record) error {
	batch := c.NewBatch(client)
	for _, r := range records {
		batch.Add(ctx, r)
	}
	return batch.Flush(ctx, client)
}

func (c *copier) exactlyOnce(ctx context.Context, member int) error {
	session, err := kgo.NewGroupTransactSession(c.Client(
		kgo.TransactionalID(fmt.Sprintf("%s-%d", c.Group, member)),
		kgo.TransactionTimeout(15*time.Second))...)
	if err != nil {
		return err
	}
	defer session.Close()
	for ctx.Err() == nil {
		fetches := session.PollRecords(ctx, c.Batch)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("poll: %w", err)
		}
		if err := c.transaction(ctx, session, fetches.Records()); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// transaction that was aborted leaves the records to the next poll.
func (c *copier) transaction(
	ctx context.Context, session *kgo.GroupTransactSession, records []*kgo.Record,
) error {
	if err := session.Begin(); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	batch := c.NewBatch(session)
	for _, r := range records {
		batch.Add(ctx, r)
	}
	try := kgo.TryCommit
	if err := batch.Flush(ctx, session.Client()); err != nil {
		try = kgo.TryAbort
	}
	if _, err := session.End(ctx, try); err != nil {
		return fmt.Errorf("end: %w", err)
	}
	return nil
}
