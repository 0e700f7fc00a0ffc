package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	claims "github.com/kdedup/kdedup/dedup/postgres"
	keys "github.com/kdedup/kdedup/idempotency/postgres"
)

//go:embed schema.sql
var schema string

// claimOptions are for the consumer's claims, which have a schema of their own beside kdedup's.
func claimOptions(p place) claims.Options {
	return claims.Options{Hosts: []string{p.postgres}, Database: p.shop, Username: "postgres",
		Schema: "shipping", Logger: slog.Default()}
}

// setup may be repeated.
func setup(ctx context.Context, p place) error {
	if err := createDatabase(ctx, p); err != nil {
		return fmt.Errorf("create the database: %w", err)
	}
	pool, err := p.connect(ctx, p.shop)
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, schema); err != nil {
		return fmt.Errorf("create the tables: %w", err)
	}
	if err := claims.Setup(ctx, claimOptions(p), false, func(string) {}); err != nil {
		return err
	}
	if err := keys.Setup(ctx, pool, keys.Options{}); err != nil {
		return err
	}
	return createTopic(ctx, p)
}

func createDatabase(ctx context.Context, p place) error {
	pool, err := p.connect(ctx, "postgres")
	if err != nil {
		return err
	}
	defer pool.Close()
	_, err = pool.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{p.shop}.Sanitize())
	if exists, ok := errors.AsType[*pgconn.PgError](err); ok && exists.Code == "42P04" {
		return nil
	}
	return err
}

func createTopic(ctx context.Context, p place) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(p.kafka))
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = kadm.NewClient(client).CreateTopic(ctx, 4, -1, nil, p.topic())
	if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		return fmt.Errorf("create topic %s: %w", p.topic(), err)
	}
	return nil
}
