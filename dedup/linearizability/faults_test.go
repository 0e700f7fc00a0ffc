package linearizability_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kdedup/kdedup/internal/pause"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// faults are what happens between the clients and their server, and to it. All is well when run
// returns.
type faults struct {
	proxies []*testkit.Proxy
	server  *servers.Server // of the test's own; may be nil

	mu    sync.Mutex
	count map[string]int
}

func (f *faults) note(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count == nil {
		f.count = make(map[string]int)
	}
	f.count[what]++
}

func (f *faults) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for _, what := range slices.Sorted(maps.Keys(f.count)) {
		all = append(all, fmt.Sprintf("%s %d", what, f.count[what]))
	}
	return strings.Join(all, ", ")
}

// run makes trouble until the context ends.
func (f *faults) run(ctx context.Context, t *testing.T) {
	var all sync.WaitGroup
	for _, proxy := range f.proxies {
		all.Go(func() { f.disturbConnections(ctx, proxy) })
	}
	if f.server != nil {
		all.Go(func() { f.disturbServer(ctx, t) })
	}
	all.Wait()
}

func (f *faults) disturbConnections(ctx context.Context, proxy *testkit.Proxy) {
	troubles := testkit.Troubles()
	for pause.For(ctx, between(100*time.Millisecond, 800*time.Millisecond)) {
		trouble := troubles[rand.IntN(len(troubles))]
		proxy.Make(trouble, between(20*time.Millisecond, 1500*time.Millisecond))
		f.note(trouble.String())
		pause.For(ctx, between(100*time.Millisecond, 1200*time.Millisecond))
		proxy.Make(testkit.NoTrouble, 0)
	}
}

// disturbServer lets it stand still, and kills it now and then.
func (f *faults) disturbServer(ctx context.Context, t *testing.T) {
	for pause.For(ctx, between(500*time.Millisecond, 3*time.Second)) {
		if rand.IntN(3) == 0 {
			f.server.Kill()
			if err := f.server.Restart(context.WithoutCancel(ctx)); err != nil {
				t.Error(err)
				return
			}
			f.note("server killed")
			continue
		}
		if err := f.server.Pause(); err != nil {
			t.Error(err)
			return
		}
		pause.For(ctx, between(100*time.Millisecond, 2*time.Second))
		if err := f.server.Resume(); err != nil {
			t.Error(err)
			return
		}
		f.note("server paused")
	}
}
