package main

import (
	"context"
	"os"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"time"

	"github.com/kdedup/kdedup/config"
)

// What a lane holds comes and goes with its batches: much lives while one is polled and forwarded, little while its claims are at
// work. A percentage of what lives (GOGC) lets garbage pile up when there is most of it, and collects all the time when there is
// least. So a limit decides when to collect: two lanes on Cassandra take 15 MiB less with it than with 50 %, and less processor
// time (docs/tried.md). The embedded store has no such pauses, and is a sixth faster without.

const (
	leastMemory    = 100 << 20 // of Go's own account, for two lanes with records of some hundred bytes
	memoryInterval = time.Second
)

// memoryLimit leaves room beside what lives, or the collector would be at work all the time.
func memoryLimit(live uint64) int64 { return max(leastMemory, int64(live+live/2)) }

// limitMemory adapts the limit to what lives until stop is called. It leaves the collector alone if GOGC is set, and never
// goes above GOMEMLIMIT.
func limitMemory(store string) (stop func()) {
	if store == config.StoreEmbedded || os.Getenv("GOGC") != "" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		followMemory(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

func followMemory(ctx context.Context) {
	most := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(most)
	tick := time.NewTicker(memoryInterval)
	defer tick.Stop()
	live := []runtimemetrics.Sample{{Name: "/gc/heap/live:bytes"}} // as the last collection found it
	for {
		runtimemetrics.Read(live)
		debug.SetMemoryLimit(min(most, memoryLimit(live[0].Value.Uint64())))
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
