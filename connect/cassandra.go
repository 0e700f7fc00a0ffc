package connect

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/cassandra"
)

func openCassandra(
	ctx context.Context, c config.Cassandra, reg prometheus.Registerer, log *slog.Logger,
) (dedup.Store, error) {
	options, err := cassandraOptions(c, log)
	if err != nil {
		return nil, err
	}
	store, err := cassandra.Open(ctx, options, reg)
	if err != nil {
		return nil, fmt.Errorf("store.cassandra: %w", err)
	}
	return store, nil
}

func setupCassandra(
	ctx context.Context, c config.Cassandra, log *slog.Logger, dryRun bool, say func(string),
) error {
	options, err := cassandraOptions(c, log)
	if err != nil {
		return err
	}
	if err := cassandra.Setup(ctx, options, c.Replication, dryRun, say); err != nil {
		return fmt.Errorf("store.cassandra: %w", err)
	}
	return nil
}

func cassandraOptions(c config.Cassandra, log *slog.Logger) (cassandra.Options, error) {
	encrypted, err := Encryption("store.cassandra.tls", c.TLS, log)
	if err != nil {
		return cassandra.Options{}, err
	}
	return cassandra.Options{
		Hosts: c.Hosts, Keyspace: c.Keyspace, Table: c.Table, LocalDC: c.LocalDC,
		Username: c.Username, Password: c.Password.Reveal(), TLS: encrypted,
		Consistency: c.Consistency, SerialConsistency: c.SerialConsistency,
		Timeout: c.Timeout, Connections: c.Connections, InFlight: c.InFlight,
		BatchClaims: c.BatchClaims,
		Logger:      log,
	}, nil
}
