package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/cassandra"
	"github.com/kdedup/kdedup/dedup/embedded"
	"github.com/kdedup/kdedup/internal/kafka"
)

func openStore(ctx context.Context, c config.Store, reg prometheus.Registerer, log *slog.Logger) (dedup.Store, error) {
	if c.Type == config.StoreEmbedded {
		store, err := embedded.Open(embedded.Options{Path: c.Embedded.Path, Logger: log, Registerer: reg})
		if err != nil {
			return nil, fmt.Errorf("store.embedded.path: %w", err)
		}
		return store, nil
	}
	if c.Type == config.StoreRedis {
		return openRedis(ctx, c.Redis, reg, log)
	}
	if c.Type == config.StorePostgres {
		return openPostgres(ctx, c.Postgres, reg, log)
	}
	options, err := cassandraOptions(c.Cassandra, log)
	if err != nil {
		return nil, err
	}
	store, err := cassandra.Open(ctx, options, reg)
	if err != nil {
		return nil, fmt.Errorf("store.cassandra: %w", err)
	}
	return store, nil
}

func setupStore(ctx context.Context, c config.Store, log *slog.Logger, dryRun bool, say func(string)) error {
	if c.Type == config.StoreEmbedded {
		say("store " + c.Embedded.Path + " needs no setup: run creates its directory")
		return nil
	}
	if c.Type == config.StoreRedis {
		return setupRedis(ctx, c.Redis, log, say)
	}
	if c.Type == config.StorePostgres {
		return setupPostgres(ctx, c.Postgres, log, dryRun, say)
	}
	options, err := cassandraOptions(c.Cassandra, log)
	if err != nil {
		return err
	}
	if err := cassandra.Setup(ctx, options, c.Cassandra.Replication, dryRun, say); err != nil {
		return fmt.Errorf("store.cassandra: %w", err)
	}
	return nil
}

func cassandraOptions(c config.Cassandra, log *slog.Logger) (cassandra.Options, error) {
	var encryption *tls.Config
	if c.TLS.Enabled {
		var err error
		if encryption, err = kafka.TLS(c.TLS); err != nil {
			return cassandra.Options{}, fmt.Errorf("store.cassandra.tls: %w", err)
		}
	}
	return cassandra.Options{
		Hosts: c.Hosts, Keyspace: c.Keyspace, Table: c.Table, LocalDC: c.LocalDC,
		Username: c.Username, Password: c.Password.Reveal(), TLS: encryption,
		Consistency: c.Consistency, SerialConsistency: c.SerialConsistency,
		Timeout: c.Timeout, Connections: c.Connections, InFlight: c.InFlight, BatchClaims: c.BatchClaims,
		Logger: log,
	}, nil
}
