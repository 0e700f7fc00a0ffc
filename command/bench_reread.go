package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/pause"
)

// reread measures how long a process without files reads its part of a claim log before it is
// ready, beside the others if there are some. Other stores have no such thing.
func (b *claimBench) reread(
	ctx context.Context, scope dedup.Scope, log *slog.Logger,
) ([]result, error) {
	last := len(b.stores) - 1 // one that keeps
	c := b.stores[last].config
	if !c.Store.Logs() {
		return nil, nil
	}
	if err := b.stores[last].Close(); err != nil {
		return nil, err
	}
	if path, _ := c.Store.IndexPath(); path != nil {
		if err := os.RemoveAll(filepath.Join(*path, "instance-"+c.Instance)); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	store, err := openBenchStore(ctx, c, log)
	if err != nil {
		return nil, err
	}
	b.stores[last] = store
	if err := connect.WaitReady(ctx, store.Store, scope); err != nil {
		return nil, err
	}
	for connect.CheckReady(store.Store) != nil {
		if !pause.For(ctx, readyEvery) {
			return nil, context.Cause(ctx)
		}
	}
	took := time.Since(began)
	states := connect.LogStates(store.Store)
	if len(states) == 0 {
		return nil, errors.New("the store has read no claim log")
	}
	state := states[0]
	what := "the whole claim log, into an empty index"
	if len(state.Keepers) > 0 {
		what = fmt.Sprintf("what one of %d processes is to keep, into an empty index; and the "+
			"group takes it as a member", len(b.stores))
	}
	return []result{
		{"read again s", took.Seconds(), what},
		{"read again claims/s", float64(state.Claims) / took.Seconds(), ""},
		{"index bytes/claim", float64(state.Bytes) / float64(max(state.Claims, 1)), "on the disk"},
	}, nil
}

// readyEvery is how exact the time of a start is.
const readyEvery = 20 * time.Millisecond
