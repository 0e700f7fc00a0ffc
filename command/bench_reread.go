package command

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/claimlog"
)

// reread measures how long a process without files reads a claim log before it can claim. Other
// stores have no such thing.
func (b *claimBench) reread(
	ctx context.Context, c config.Config, scope dedup.Scope, log *slog.Logger,
) ([]result, error) {
	if !c.Store.Logs() {
		return nil, nil
	}
	if err := b.store.Close(); err != nil {
		return nil, err
	}
	if path, _ := c.Store.IndexPath(); path != nil {
		if err := os.RemoveAll(*path); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	store, err := connect.OpenStore(ctx, c, prometheus.NewRegistry(), log)
	if err != nil {
		return nil, err
	}
	b.store = store
	if err := connect.WaitReady(ctx, b.store, scope); err != nil {
		return nil, err
	}
	took := time.Since(began)
	read, is := dedup.Unwrapped(b.store).(*claimlog.Store)
	if !is || len(read.States()) == 0 {
		return nil, errors.New("the store has read no claim log")
	}
	state := read.States()[0]
	return []result{
		{"read again s", took.Seconds(), "the whole claim log, into an empty index"},
		{"read again claims/s", float64(state.Claims) / took.Seconds(), ""},
		{"index bytes/claim", float64(state.Bytes) / float64(max(state.Claims, 1)), "on the disk"},
	}, nil
}
