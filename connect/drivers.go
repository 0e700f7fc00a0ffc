package connect

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/cassandra"
	"github.com/kdedup/kdedup/dedup/embedded"
	"github.com/kdedup/kdedup/dedup/postgres"
	"github.com/kdedup/kdedup/dedup/redis"
)

// driver opens a store of one type, and makes what it needs on its server.
type driver struct {
	open func(context.Context, config.Config, prometheus.Registerer, *slog.Logger) (
		dedup.Store, error)
	setup func(ctx context.Context, c config.Config, log *slog.Logger, dryRun bool,
		say func(string)) error
}

// driverOf is that of the store which the configuration names.
func driverOf(c config.Store) driver {
	switch {
	case c.Logs() && c.Type == config.StoreCassandra:
		return driver{openClaimLog, setupCassandraLogs}
	case c.Logs():
		return driver{openClaimLog, noSetup} // see SetupClaimLogs
	}
	return drivers[c.Type]
}

var drivers = map[string]driver{
	config.StoreCassandra: onServer("store.cassandra",
		func(c config.Store, log *slog.Logger) (cassandra.Options, error) {
			return cassandraOptions(c.Cassandra, log)
		}, cassandra.Open,
		func(ctx context.Context, o cassandra.Options, c config.Store, dryRun bool,
			say func(string)) error {
			return cassandra.Setup(ctx, o, c.Cassandra.Replication, dryRun, say)
		}),
	config.StorePostgres: onServer("store.postgres",
		func(c config.Store, log *slog.Logger) (postgres.Options, error) {
			return postgresOptions(c.Postgres, log)
		}, postgres.Open,
		func(ctx context.Context, o postgres.Options, _ config.Store, dryRun bool,
			say func(string)) error {
			return postgres.Setup(ctx, o, dryRun, say)
		}),
	config.StoreRedis: onServer("store.redis",
		func(c config.Store, log *slog.Logger) (redis.Options, error) {
			return redisOptions(c.Redis, log)
		}, redis.Open,
		func(ctx context.Context, o redis.Options, _ config.Store, _ bool,
			say func(string)) error {
			return redis.Setup(ctx, o, say)
		}),
	config.StoreEmbedded: {openEmbedded, setupEmbedded},
}

// onServer is the driver of a store on a server, whose options are made of a section of the
// configuration.
func onServer[O any, S dedup.Store](
	section string, optionsOf func(config.Store, *slog.Logger) (O, error),
	open func(context.Context, O, prometheus.Registerer) (S, error),
	setup func(context.Context, O, config.Store, bool, func(string)) error,
) driver {
	return driver{
		open: func(ctx context.Context, c config.Config, reg prometheus.Registerer,
			log *slog.Logger) (dedup.Store, error) {
			options, err := optionsOf(c.Store, log)
			if err != nil {
				return nil, err
			}
			store, err := open(ctx, options, reg)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", section, err)
			}
			return store, nil
		},
		setup: func(ctx context.Context, c config.Config, log *slog.Logger, dryRun bool,
			say func(string)) error {
			options, err := optionsOf(c.Store, log)
			if err != nil {
				return err
			}
			if err := setup(ctx, options, c.Store, dryRun, say); err != nil {
				return fmt.Errorf("%s: %w", section, err)
			}
			return nil
		},
	}
}

func openEmbedded(
	_ context.Context, c config.Config, reg prometheus.Registerer, log *slog.Logger,
) (dedup.Store, error) {
	store, err := embedded.Open(embedded.Options{Path: c.Store.Embedded.Path, Logger: log,
		Registerer: reg})
	if err != nil {
		return nil, fmt.Errorf("store.embedded.path: %w", err)
	}
	return store, nil
}

func setupEmbedded(
	_ context.Context, c config.Config, _ *slog.Logger, _ bool, say func(string),
) error {
	say("store " + c.Store.Embedded.Path + " needs no setup: run creates its directory")
	return nil
}

func noSetup(context.Context, config.Config, *slog.Logger, bool, func(string)) error { return nil }

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

func redisOptions(c config.Redis, log *slog.Logger) (redis.Options, error) {
	encrypted, err := Encryption("store.redis.tls", c.TLS, log)
	if err != nil {
		return redis.Options{}, err
	}
	return redis.Options{
		Mode: c.Mode, Addresses: c.Addresses, MasterName: c.MasterName, Database: c.Database,
		Username: c.Username, Password: c.Password.Reveal(),
		SentinelUsername: c.SentinelUsername, SentinelPassword: c.SentinelPassword.Reveal(),
		TLS:       encrypted,
		KeyPrefix: c.KeyPrefix, Timeout: c.Timeout, Connections: c.Connections,
		PipelineClaims: c.PipelineClaims,
		WaitReplicas:   c.WaitReplicas, WaitTimeout: c.WaitTimeout, Logger: log,
	}, nil
}
