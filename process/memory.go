package process

import (
	"context"
	"log/slog"
	"os"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/internal/pause"
)

// What a lane holds comes and goes with its batches: much lives while one is polled and forwarded,
// little while its claims are at work. A percentage of what lives (GOGC) lets garbage pile up when
// there is most of it, and collects all the time when there is least. So a limit decides when to
// collect: two lanes on Cassandra take 15 MiB less with it than with 50 %, and less processor time.
// The embedded store has no such pauses, and is a sixth faster without.

const (
	// Of Go's own account, with records of some hundred bytes. With 64 MiB one lane takes no more
	// processor time than with 100, as long as not more than 40 lives; two lanes take half as much
	// again.
	memoryOfOneLane = 64 << 20
	livesInOneLane  = 40 << 20
	leastMemory     = 100 << 20
	memoryInterval  = time.Second
)

// hasOneLane is false for a pattern, which has a lane of each topic.
func hasOneLane(topics []config.Topic) bool {
	return len(topics) == 1 && topics[0].Lanes == 1 && topics[0].Pattern == ""
}

// memoryLimit leaves room beside what lives, or the collector would be at work all the time.
func memoryLimit(oneLane bool, live uint64) int64 {
	if oneLane && live <= livesInOneLane {
		return memoryOfOneLane
	}
	return max(leastMemory, int64(live+live/2))
}

// ContainMemory has the collector work harder from 90 % of the container's or the unit's limit on,
// before the kernel ends the process. GOMEMLIMIT goes before it.
func ContainMemory(log *slog.Logger, limit memlimit.Provider) {
	if _, err := memlimit.Set(memlimit.WithProvider(limit)); err != nil {
		log.Debug("the limit of the process's memory is not known", "error", err)
	}
}

// LimitMemory sets the limit and adapts it to what lives until stop is called. It leaves the
// collector alone if GOGC is set, and never goes above GOMEMLIMIT.
func LimitMemory(c config.Config) (stop func()) {
	if c.Store.Type == config.StoreEmbedded || os.Getenv("GOGC") != "" {
		return func() {}
	}
	most, oneLane := debug.SetMemoryLimit(-1), hasOneLane(c.Topics)
	adaptMemory(oneLane, most)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		pause.Every(ctx, memoryInterval, func() { adaptMemory(oneLane, most) })
	}()
	return func() {
		cancel()
		<-done
		debug.SetMemoryLimit(most)
	}
}

func adaptMemory(oneLane bool, most int64) {
	// as the last collection found it
	live := []runtimemetrics.Sample{{Name: "/gc/heap/live:bytes"}}
	runtimemetrics.Read(live)
	debug.SetMemoryLimit(min(most, memoryLimit(oneLane, live[0].Value.Uint64())))
}
