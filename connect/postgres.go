package connect

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/postgres"
)

func openPostgres(
	ctx context.Context, c config.Postgres, reg prometheus.Registerer, log *slog.Logger,
) (dedup.Store, error) {
	options, err := postgresOptions(c, log)
	if err != nil {
		return nil, err
	}
	store, err := postgres.Open(ctx, options, reg)
	if err != nil {
		return nil, fmt.Errorf("store.postgres: %w", err)
	}
	return store, nil
}

func setupPostgres(
	ctx context.Context, c config.Postgres, log *slog.Logger, dryRun bool, say func(string),
) error {
	options, err := postgresOptions(c, log)
	if err != nil {
		return err
	}
	if err := postgres.Setup(ctx, options, dryRun, say); err != nil {
		return fmt.Errorf("store.postgres: %w", err)
	}
	return nil
}

func postgresOptions(c config.Postgres, log *slog.Logger) (postgres.Options, error) {
	encrypted, err := Encryption("store.postgres.tls", c.TLS, log)
	if err != nil {
		return postgres.Options{}, err
	}
	return postgres.Options{
		Hosts: c.Hosts, Database: c.Database, Username: c.Username, Password: c.Password.Reveal(),
		TLS:    encrypted,
		Schema: c.Schema, Table: c.Table, Timeout: c.Timeout, Connections: c.Connections,
		BatchClaims:   c.BatchClaims,
		SweepInterval: c.SweepInterval, Logger: log,
	}, nil
}
