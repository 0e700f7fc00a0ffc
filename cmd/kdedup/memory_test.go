package main

import (
	"math"
	"runtime/debug"
	"testing"

	"github.com/kdedup/kdedup/config"
)

func TestMemoryIsLimitedUnlessTheEnvironmentSaysOtherwise(t *testing.T) {
	for _, row := range []struct {
		name, store, environment string
		before, want             int64
	}{
		{"Cassandra", config.StoreCassandra, "", math.MaxInt64, leastMemory},
		{"Redis", config.StoreRedis, "", math.MaxInt64, leastMemory},
		{"the embedded store", config.StoreEmbedded, "", math.MaxInt64, math.MaxInt64},
		{"GOGC", config.StoreCassandra, "200", math.MaxInt64, math.MaxInt64},
		{"GOMEMLIMIT", config.StoreCassandra, "", leastMemory / 2, leastMemory / 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Setenv("GOGC", row.environment)
			defer debug.SetMemoryLimit(debug.SetMemoryLimit(row.before))
			stop := limitMemory(row.store)
			if got := debug.SetMemoryLimit(-1); got != row.want {
				t.Errorf("got %d, want %d", got, row.want)
			}
			stop()
			if got := debug.SetMemoryLimit(-1); got != row.before {
				t.Errorf("%d afterwards, was %d", got, row.before)
			}
		})
	}
}

func TestTheLimitLeavesRoomBesideWhatLives(t *testing.T) {
	for _, row := range []struct{ live, want int64 }{
		{0, 100}, {45, 100}, {66, 100}, {80, 120}, {3000, 4500},
	} {
		if got := memoryLimit(uint64(row.live) << 20); got != row.want<<20 {
			t.Errorf("%d MiB for %d", got>>20, row.live)
		}
	}
}
