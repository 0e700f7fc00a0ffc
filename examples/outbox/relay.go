package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	relayBatch = 10 // small, so that a kill finds something under way
	relayPause = 100 * time.Millisecond
)

// relay publishes the outbox, at least once. Several may run: their batches are apart, and only the
// order of events between batches suffers.
func relay(ctx context.Context, p place) error {
	pool, err := p.connect(ctx, p.shop)
	if err != nil {
		return err
	}
	defer pool.Close()
	client, err := kgo.NewClient(kgo.SeedBrokers(p.kafka), kgo.DefaultProduceTopic(p.topic()))
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		n, err := publishBatch(ctx, pool, client)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("publish: %w", err)
		}
		if n < relayBatch {
			select {
			case <-time.After(relayPause):
			case <-ctx.Done():
			}
		}
	}
}

// outboxRow is an event that was not published, as far as anybody knows.
type outboxRow struct {
	ID      int64
	EventID string
	OrderID int64
	Payload string
}

// publishBatch takes the oldest events that no other relay has, publishes them, and deletes them.
// If it dies in between, the rows are unlocked and still there, and the events are published a
// second time, with the same IDs.
func publishBatch(ctx context.Context, pool *pgxpool.Pool, client *kgo.Client) (n int, err error) {
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT id, event_id::text, order_id, payload FROM outbox
			ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED`, relayBatch)
		if err != nil {
			return err
		}
		events, err := pgx.CollectRows(rows, pgx.RowToStructByPos[outboxRow])
		if n = len(events); err != nil || n == 0 {
			return err
		}
		ids, records := make([]int64, n), make([]*kgo.Record, n)
		for i, e := range events {
			ids[i], records[i] = e.ID, e.record()
		}
		if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "DELETE FROM outbox WHERE id = ANY($1)", ids)
		return err
	})
	return n, err
}

func (e outboxRow) record() *kgo.Record {
	return &kgo.Record{
		// events of one order stay in order
		Key: strconv.AppendInt(nil, e.OrderID, 10), Value: []byte(e.Payload),
		Headers: []kgo.RecordHeader{{Key: "message-id", Value: []byte(e.EventID)}},
	}
}
