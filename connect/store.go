package connect

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/embedded"
	"github.com/kdedup/kdedup/internal/certs"
)

// OpenStore connects the store that the configuration names.
func OpenStore(
	ctx context.Context, c config.Config, reg prometheus.Registerer, log *slog.Logger,
) (dedup.Store, error) {
	switch c.Store.Type {
	case config.StoreCassandra:
		if c.Store.Logs() {
			return openClaimLog(ctx, c, reg, log)
		}
		return openCassandra(ctx, c.Store.Cassandra, reg, log)
	case config.StoreRedis:
		return openRedis(ctx, c.Store.Redis, reg, log)
	case config.StorePostgres:
		return openPostgres(ctx, c.Store.Postgres, reg, log)
	case config.StoreKafka:
		return openClaimLog(ctx, c, reg, log)
	}
	store, err := embedded.Open(embedded.Options{Path: c.Store.Embedded.Path, Logger: log,
		Registerer: reg})
	if err != nil {
		return nil, fmt.Errorf("store.embedded.path: %w", err)
	}
	return store, nil
}

// CheckRights asks a store that has rights whether it may do what run does.
func CheckRights(ctx context.Context, store dedup.Store) error {
	guarded, ok := store.(interface{ CheckRights(context.Context) error })
	if !ok {
		return nil
	}
	return guarded.CheckRights(ctx)
}

func setupStore(
	ctx context.Context, c config.Config, log *slog.Logger, dryRun bool, say func(string),
) error {
	switch c.Store.Type {
	case config.StoreCassandra:
		if c.Store.Logs() {
			return setupCassandraLogs(ctx, c, log, dryRun, say)
		}
		return setupCassandra(ctx, c.Store.Cassandra, log, dryRun, say)
	case config.StoreRedis:
		return setupRedis(ctx, c.Store.Redis, log, say)
	case config.StorePostgres:
		return setupPostgres(ctx, c.Store.Postgres, log, dryRun, say)
	case config.StoreKafka:
		return nil // see SetupClaimLogs
	}
	say("store " + c.Store.Embedded.Path + " needs no setup: run creates its directory")
	return nil
}

// Encryption returns what connections are made with, which follows the files; nil if none is
// wanted. Section is the name of the settings, for errors.
func Encryption(section string, t config.TLS, log *slog.Logger) (func() *tls.Config, error) {
	if !t.Enabled {
		return nil, nil
	}
	files, err := certs.Client(section, certs.ClientFiles{
		CAFile: t.CAFile, CertFile: t.CertFile, KeyFile: t.KeyFile, ServerName: t.ServerName,
	}, log)
	if err != nil {
		return nil, err
	}
	return files.Current, nil
}

// NotMade reports whether the store is an embedded one that no run has made yet.
func NotMade(c config.Store) bool {
	if c.Type != config.StoreEmbedded {
		return false
	}
	_, err := os.Stat(c.Embedded.Path)
	return errors.Is(err, fs.ErrNotExist)
}

// CheckMade refuses a store that is NotMade, for commands that look at its claims.
func CheckMade(c config.Store) error {
	if !NotMade(c) {
		return nil
	}
	return fmt.Errorf("there is no %s: kdedup run makes it; a relative path starts at the "+
		"working directory", StoreName(c))
}
