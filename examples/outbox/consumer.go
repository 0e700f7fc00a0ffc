package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
	claims "github.com/kdedup/kdedup/dedup/postgres"
	"github.com/kdedup/kdedup/idempotency"
	keys "github.com/kdedup/kdedup/idempotency/postgres"
)

// window is how late a redelivery may come and be known as one.
const window = 7 * 24 * time.Hour

// consumer applies each event once. The clean topic has it once, but a consumer that dies before it
// commits its offsets reads it again.
type consumer struct {
	client *kgo.Client
	pool   *pgxpool.Pool
	ids    *messageid.Extractor
	claims *claims.TxClaims
	once   *idempotency.Executor
}

// consume makes a consumer and runs it until the context ends.
func consume(ctx context.Context, p place) error {
	c := &consumer{}
	var err error
	if c.pool, err = p.connect(ctx, p.shop); err != nil {
		return err
	}
	defer c.pool.Close()
	if c.ids, err = messageid.New(
		messageid.Source{From: "header", Name: "message-id"},
	); err != nil {
		return err
	}
	store, err := claims.Open(ctx, claimOptions(p), nil)
	if err != nil {
		return err
	}
	defer store.Close()
	c.claims, err = store.TxClaims(ctx, dedup.Scope{ConsumerGroup: p.group(), Name: p.cleanTopic(),
		TTL: window, Extractor: c.ids.String()})
	if err != nil {
		return err
	}
	keyStore, err := keys.Open(ctx, c.pool, keys.Options{Logger: slog.Default()})
	if err != nil {
		return err
	}
	defer keyStore.Close()
	c.once, err = idempotency.New(keyStore,
		idempotency.Options{TTL: window, Lease: 10 * time.Second, Logger: slog.Default()})
	if err != nil {
		return err
	}
	if c.client, err = join(p); err != nil {
		return err
	}
	defer c.client.CloseAllowingRebalance()
	return c.run(ctx)
}

func join(p place) (*kgo.Client, error) {
	return kgo.NewClient(kgo.SeedBrokers(p.kafka), kgo.ConsumerGroup(p.group()),
		kgo.ConsumeTopics(p.cleanTopic()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), // or it would read what kdedup took back
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.InstanceID("consumer-1")) // after a kill -9 the next one has its partitions at once
}

func (c *consumer) run(ctx context.Context) error {
	for {
		if err := c.turn(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		if ctx.Err() != nil {
			return nil // what was not committed is read again
		}
	}
}

// turn takes one batch: its effects, and then its offsets.
func (c *consumer) turn(ctx context.Context) error {
	fetches := c.client.PollRecords(ctx, 100)
	defer c.client.AllowRebalance()
	if err := fetches.Err(); err != nil {
		return fmt.Errorf("poll: %w", err)
	}
	messages := dedup.Messages(fetches)
	if err := c.ship(ctx, messages); err != nil {
		return fmt.Errorf("ship: %w", err)
	}
	if err := c.mail(ctx, messages); err != nil {
		return fmt.Errorf("mail: %w", err)
	}
	if err := c.client.CommitUncommittedOffsets(ctx); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// ship is an effect in our own database: claims and rows are one transaction.
func (c *consumer) ship(ctx context.Context, messages []dedup.Message) error {
	batch, err := c.claimsOf(messages)
	if err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
		judgements, err := c.claims.Claim(ctx, tx, batch)
		if err != nil {
			return err
		}
		for i, m := range messages {
			if judgements[i].Verdict != dedup.VerdictFirst {
				continue // it was shipped, in a transaction that was committed
			}
			var e event
			if err := json.Unmarshal(m.Record.Value, &e); err != nil {
				return fmt.Errorf("event %s: %w", batch[i].ID, err)
			}
			if _, err := tx.Exec(
				ctx, "INSERT INTO shipments (order_id, item) VALUES ($1, $2)", e.Order, e.Item,
			); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *consumer) claimsOf(messages []dedup.Message) ([]dedup.Claim, error) {
	batch := make([]dedup.Claim, len(messages))
	fingerprints := messageid.NewFingerprinter()
	for i, m := range messages {
		id, missing := c.ids.Extract(m.Record)
		if missing != dedup.NotMissing {
			return nil, fmt.Errorf("record %d/%d has no message-id: %v", m.Owner.Partition,
				m.Owner.Offset, missing)
		}
		batch[i] = dedup.Claim{ID: id, Owner: m.Owner, Fingerprint: fingerprints.Of(m.Record)}
	}
	return batch, nil
}
