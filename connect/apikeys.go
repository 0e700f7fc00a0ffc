package connect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/dedup/cassandra"
	"github.com/kdedup/kdedup/dedup/postgres"
	"github.com/kdedup/kdedup/dedup/redis"
	"github.com/kdedup/kdedup/idempotency"
	keyscassandra "github.com/kdedup/kdedup/idempotency/cassandra"
	"github.com/kdedup/kdedup/idempotency/embedded"
	keyspostgres "github.com/kdedup/kdedup/idempotency/postgres"
	keysredis "github.com/kdedup/kdedup/idempotency/redis"
)

// OpenAPIKeys opens where the API keeps idempotency keys; nil if it has none. The keys have
// connections of their own: claims do not wait for them.
func OpenAPIKeys(
	ctx context.Context, c config.Config, log *slog.Logger,
) (store idempotency.Store, closing func() error, err error) {
	keys := c.API.Keys
	switch keys.Type {
	case config.KeysInFiles:
		files, err := embedded.Open(embedded.Options{Path: keys.Path, Logger: log})
		if err != nil {
			return nil, nil, fmt.Errorf("api.keys.path: %w", err)
		}
		return files, files.Close, nil
	case config.KeysInStore:
		ctx, cancel := context.WithTimeout(ctx, StartTimeout)
		defer cancel()
		if store, closing, err = openKeysInStore(ctx, c, log); err != nil {
			return nil, nil, fmt.Errorf("api.keys: %w", err)
		}
		return store, closing, nil
	}
	return nil, func() error { return nil }, nil
}

func openKeysInStore(
	ctx context.Context, c config.Config, log *slog.Logger,
) (idempotency.Store, func() error, error) {
	switch c.Store.Type {
	case config.StoreRedis:
		return openKeysInRedis(c, log)
	case config.StorePostgres:
		return openKeysInPostgres(ctx, c, log)
	}
	return openKeysInCassandra(ctx, c, log)
}

func openKeysInRedis(
	c config.Config, log *slog.Logger,
) (idempotency.Store, func() error, error) {
	options, err := redisOptions(c.Store.Redis, log)
	if err != nil {
		return nil, nil, err
	}
	client := redis.Connect(options)
	prefix := options.KeyPrefix + c.API.Keys.Table + ":"
	return keysredis.New(client, prefix), client.Close, nil
}

// connected is the connection with options, unless these have an error.
func connected[O, C any](
	ctx context.Context, options O, err error, connect func(context.Context, O) (C, error),
) (connection C, _ error) {
	if err != nil {
		return connection, err
	}
	return connect(ctx, options)
}

func openKeysInPostgres(
	ctx context.Context, c config.Config, log *slog.Logger,
) (idempotency.Store, func() error, error) {
	options, err := postgresOptions(c.Store.Postgres, log)
	pool, err := connected(ctx, options, err, postgres.Connect)
	if err != nil {
		return nil, nil, err
	}
	keys := postgresKeys(c)
	keys.Logger, keys.SweepInterval = log, c.Store.Postgres.SweepInterval
	store, err := keyspostgres.Open(ctx, pool, keys)
	if err != nil {
		pool.Close()
		return nil, nil, fmt.Errorf("run kdedup setup: %w", err)
	}
	return store, func() error {
		err := store.Close()
		pool.Close()
		return err
	}, nil
}

func postgresKeys(c config.Config) keyspostgres.Options {
	return keyspostgres.Options{Table: c.Store.Postgres.Schema + "." + c.API.Keys.Table}
}

func openKeysInCassandra(
	ctx context.Context, c config.Config, log *slog.Logger,
) (idempotency.Store, func() error, error) {
	options, err := cassandraOptions(c.Store.Cassandra, log)
	session, err := connected(ctx, options, err, cassandra.Connect)
	if err != nil {
		return nil, nil, err
	}
	driver, serial := session.Driver()
	keys := cassandraKeys(c)
	keys.Serial = serial
	store, err := keyscassandra.Open(ctx, driver, keys)
	if err != nil {
		session.Close()
		return nil, nil, fmt.Errorf("run kdedup setup: %w", err)
	}
	return store, func() error {
		session.Close()
		return nil
	}, nil
}

func cassandraKeys(c config.Config) keyscassandra.Options {
	return keyscassandra.Options{Table: c.Store.Cassandra.Keyspace + "." + c.API.Keys.Table}
}

// setupAPIKeys makes the table of the keys. It comes after the setup of the store.
func setupAPIKeys(
	ctx context.Context, c config.Config, log *slog.Logger, dryRun bool, say func(string),
) error {
	table := c.API.Keys.Table
	if c.API.Keys.Type != config.KeysInStore || c.Store.Type == config.StoreRedis {
		return nil
	}
	if dryRun {
		say("would create the table " + table + " of api.keys where it is missing")
		return nil
	}
	setUp := setupKeysInCassandra
	if c.Store.Type == config.StorePostgres {
		setUp = setupKeysInPostgres
	}
	if err := setUp(ctx, c, log); err != nil {
		return fmt.Errorf("api.keys: %w", err)
	}
	say("table " + table + " of api.keys exists")
	return nil
}

func setupKeysInPostgres(ctx context.Context, c config.Config, log *slog.Logger) error {
	options, err := postgresOptions(c.Store.Postgres, log)
	pool, err := connected(ctx, options, err, postgres.Connect)
	if err != nil {
		return err
	}
	defer pool.Close()
	return keyspostgres.Setup(ctx, pool, postgresKeys(c))
}

func setupKeysInCassandra(ctx context.Context, c config.Config, log *slog.Logger) error {
	options, err := cassandraOptions(c.Store.Cassandra, log)
	session, err := connected(ctx, options, err, cassandra.Connect)
	if err != nil {
		return err
	}
	defer session.Close()
	driver, _ := session.Driver()
	err = keyscassandra.Setup(ctx, driver, cassandraKeys(c))
	return errors.Join(err, session.Fit())
}
