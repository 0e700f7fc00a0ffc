package connect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/cassandra"
	"github.com/kdedup/kdedup/dedup/claimlog"
	"github.com/kdedup/kdedup/dedup/claimlog/cassandralog"
)

// cassandraLogs leads to the claim logs in the keyspace of the configuration.
func cassandraLogs(c config.Cassandra, log *slog.Logger) (*cassandralog.Logs, error) {
	options, err := cassandraOptions(c, log)
	if err != nil {
		return nil, err
	}
	options.Table = c.Log.Table
	return cassandralog.New(cassandralog.Options{Cassandra: options, Logger: log}), nil
}

func setupCassandraLogs(
	ctx context.Context, c config.Config, log *slog.Logger, dryRun bool, say func(string),
) error {
	logs, err := cassandraLogs(c.Store.Cassandra, log)
	if err != nil {
		return err
	}
	longest := time.Duration(0)
	for _, g := range claimGroups(c) {
		longest = max(longest, g.ttl)
	}
	err = logs.Setup(ctx, c.Store.Cassandra.Replication, longest, dryRun, say)
	if err = errors.Join(err, logs.Close()); err != nil {
		return fmt.Errorf("store.cassandra: %w", err)
	}
	return nil
}

// foundClaimLogs comes after setupCassandraLogs.
func foundClaimLogs(
	ctx context.Context, c config.Config, log *slog.Logger, dryRun bool, say func(string),
) error {
	return withCassandraLogs(c, log, func(logs *cassandralog.Logs) error {
		for _, g := range claimGroups(c) {
			if err := logs.Found(
				ctx, g.name, c.Store.Cassandra.Log.Shards, dryRun, say,
			); err != nil {
				return err
			}
		}
		return nil
	})
}

// RemoveClaimLogs takes the claim logs of all groups away, if they are in Cassandra.
func RemoveClaimLogs(ctx context.Context, c config.Config, log *slog.Logger) error {
	if !c.Store.Logs() || c.Store.Type != config.StoreCassandra {
		return nil
	}
	return withCassandraLogs(c, log, func(logs *cassandralog.Logs) (err error) {
		for _, g := range claimGroups(c) {
			err = errors.Join(err, logs.Remove(ctx, g.name))
		}
		return err
	})
}

func checkCassandraLogs(ctx context.Context, c config.Config) error {
	return withCassandraLogs(c, slog.New(slog.DiscardHandler),
		func(logs *cassandralog.Logs) error {
			if err := logs.CheckRights(ctx); err != nil {
				return err
			}
			for _, g := range claimGroups(c) {
				if err := logs.Check(ctx, g.name); err != nil {
					return err
				}
			}
			return nil
		})
}

func withCassandraLogs(
	c config.Config, log *slog.Logger, work func(*cassandralog.Logs) error,
) error {
	logs, err := cassandraLogs(c.Store.Cassandra, log)
	if err != nil {
		return err
	}
	if err = errors.Join(work(logs), logs.Close()); err != nil {
		return fmt.Errorf("store.cassandra: %w", err)
	}
	return nil
}

// otherLayout is the store of the keyspace that has the claims of the layout that is not wanted;
// nil if there is none, or if this user may not know.
func otherLayout(ctx context.Context, c config.Store) (dedup.Store, error) {
	if c.Type != config.StoreCassandra {
		return nil, nil
	}
	log := slog.New(slog.DiscardHandler)
	if c.Cassandra.Layout == config.LayoutLog {
		rows, err := drivers[config.StoreCassandra].open(ctx, config.Config{Store: c},
			prometheus.NewRegistry(), log)
		if cassandra.Missing(err) {
			return nil, nil
		}
		return rows, err
	}
	logs, err := cassandraLogs(c.Cassandra, log)
	if err != nil {
		return nil, err
	}
	return claimlog.Open(claimlog.Options{Opener: logs, Wait: 2 * c.Cassandra.Timeout}), nil
}

// claimsOf tells whether a store may have claims of a scope that hold, and the identity of the
// store.
func claimsOf(
	ctx context.Context, store dedup.Store, scope dedup.Scope,
) (identity string, claimed bool, err error) {
	registered, found, err := store.Registered(ctx, scope)
	if err == nil && found {
		_, claimed, err = amender(ctx, store, registered)
	}
	if err == nil && claimed {
		identity, _, err = dedup.IdentityOf(ctx, store, scope)
	}
	if cassandra.Missing(err) || cassandralog.Missing(err) || cassandra.Unauthorized(err) {
		return "", false, nil
	}
	return identity, claimed, err
}

// layouts are what the two stores are called.
var layouts = []string{config.LayoutRows, config.LayoutLog}

// checkLayout refuses a scope that has claims in the other layout.
func (k Knowledge) checkLayout(ctx context.Context, e *Entry) error {
	other, err := k.otherLayout(ctx, e)
	if err != nil || other == "" {
		return err
	}
	at := slices.Index(layouts, k.config.Cassandra.Layout)
	return fmt.Errorf("%w: scope %s/%s has claims with store.cassandra.layout %s, which those of "+
		"layout %s do not know. Set layout to %[4]s; or move the claims: kdedup migrate -c NEW "+
		"--from OLD; or go on without them: kdedup setup -c FILE --accept-empty-store",
		errUnknowing, e.ScopeGroup, e.Scope, layouts[1-at], layouts[at])
}

// otherLayout is the identity of the other layout's store if it has claims of a scope that were not
// moved away, and the one in use was not declared to stand for it.
func (k Knowledge) otherLayout(ctx context.Context, e *Entry) (identity string, err error) {
	other, err := otherLayout(ctx, k.config)
	if err != nil || other == nil {
		return "", err
	}
	defer func() { err = errors.Join(err, other.Close()) }()
	identity, claimed, err := claimsOf(ctx, other, e.ClaimScope())
	if err != nil || !claimed {
		return "", err
	}
	if _, moved, err := dedup.MovedAway.Read(ctx, other, e.ClaimScope()); err != nil || moved {
		return "", err
	}
	if identity == "" { // of an earlier version
		identity = "layout " + config.LayoutRows
	}
	stands, err := dedup.StandsFor(ctx, k.store, e.ClaimScope(), identity)
	if err != nil || stands {
		return "", err
	}
	return identity, nil
}
