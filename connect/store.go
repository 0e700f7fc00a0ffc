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
	"github.com/kdedup/kdedup/internal/certs"
)

// OpenStore connects the store that the configuration names.
func OpenStore(
	ctx context.Context, c config.Config, reg prometheus.Registerer, log *slog.Logger,
) (dedup.Store, error) {
	return driverOf(c.Store).open(ctx, c, reg, log)
}

// CheckRights asks a store that has rights whether it may do what run does.
func CheckRights(ctx context.Context, store dedup.Store) error {
	guarded, ok := store.(interface{ CheckRights(context.Context) error })
	if !ok {
		return nil
	}
	return guarded.CheckRights(ctx)
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
