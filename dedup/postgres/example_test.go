package postgres_test

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
	"github.com/kdedup/kdedup/dedup/postgres"
)

// A consumer whose effect is a row: claims and rows of a batch are committed together, then the
// offsets. The tables are made once, with postgres.Setup or `kdedup setup`.
func ExampleTxClaims() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://shop@db-1/shop")
	if err != nil {
		panic(err)
	}
	defer pool.Close()
	// In the same database. The store deletes what has expired.
	store, err := postgres.Open(ctx, postgres.Options{
		Hosts: []string{"db-1"}, Database: "shop", Username: "shop", SweepInterval: time.Minute,
	}, nil)
	if err != nil {
		panic(err)
	}
	defer store.Close()
	claims, err := store.TxClaims(ctx, dedup.Scope{
		ConsumerGroup: "shipping", Name: "orders", TTL: 7 * 24 * time.Hour, Extractor: "key",
	})
	if err != nil {
		panic(err)
	}

	fingerprints := messageid.NewFingerprinter()
	apply := func(fetches kgo.Fetches) error {
		messages := dedup.Messages(fetches)
		batch := make([]dedup.Claim, len(messages))
		for i, m := range messages {
			batch[i] = dedup.Claim{ID: messageid.Of(m.Record.Key), Owner: m.Owner,
				Fingerprint: fingerprints.Of(m.Record)}
		}
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			judgements, err := claims.Claim(ctx, tx, batch)
			if err != nil {
				return err
			}
			for i, m := range messages {
				if judgements[i].Verdict != dedup.VerdictFirst {
					continue // a copy, or applied before a crash
				}
				if _, err := tx.Exec(
					ctx, "INSERT INTO shipments (content) VALUES ($1)", m.Record.Value,
				); err != nil {
					return err
				}
			}
			return nil
		})
	}

	client, err := kgo.NewClient(kgo.ConsumerGroup("shipping"), kgo.ConsumeTopics("orders"),
		kgo.DisableAutoCommit(), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		panic(err)
	}
	defer client.Close()
	for {
		fetches := client.PollRecords(ctx, 500)
		if err := fetches.Err(); err != nil {
			panic(err)
		}
		for apply(fetches) != nil { // whatever the error was: once more is right
			time.Sleep(time.Second) // before the next try
		}
		if err := client.CommitUncommittedOffsets(ctx); err != nil {
			panic(err)
		}
	}
}
