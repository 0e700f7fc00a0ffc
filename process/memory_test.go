package process

import (
	"errors"
	"log/slog"
	"math"
	"runtime/debug"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/kdedup/kdedup/config"
)

func TestMemoryIsLimitedUnlessTheEnvironmentSaysOtherwise(t *testing.T) {
	for _, row := range []struct {
		name, store  string
		lanes        []int // of each topic; 0 for a pattern with one
		environment  string
		before, want int64
	}{
		{"Cassandra", config.StoreCassandra, []int{2}, "", math.MaxInt64, leastMemory},
		{"Redis", config.StoreRedis, []int{2}, "", math.MaxInt64, leastMemory},
		{"one lane", config.StoreKafka, []int{1}, "", math.MaxInt64, memoryOfOneLane},
		{"a pattern", config.StoreKafka, []int{0}, "", math.MaxInt64, leastMemory},
		{"two topics of one lane", config.StoreKafka, []int{1, 1}, "", math.MaxInt64, leastMemory},
		{"the embedded store", config.StoreEmbedded, []int{2}, "", math.MaxInt64, math.MaxInt64},
		{"GOGC", config.StoreCassandra, []int{2}, "200", math.MaxInt64, math.MaxInt64},
		{"GOMEMLIMIT", config.StoreCassandra, []int{2}, "", leastMemory / 2, leastMemory / 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Setenv("GOGC", row.environment)
			defer debug.SetMemoryLimit(debug.SetMemoryLimit(row.before))
			c := config.Config{Store: config.Store{Type: row.store}}
			for _, lanes := range row.lanes {
				topic := config.Topic{Lanes: max(1, lanes)}
				if lanes == 0 {
					topic.Pattern = "tenant-.*"
				}
				c.Topics = append(c.Topics, topic)
			}
			stop := LimitMemory(c)
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

func TestTheMemoryStaysBelowThatOfTheContainer(t *testing.T) {
	for _, row := range []struct {
		name  string
		limit memlimit.Provider
		want  int64
	}{
		{"1 GiB", func() (uint64, error) { return 1000 << 20, nil }, 900 << 20},
		{"none", func() (uint64, error) { return 0, memlimit.ErrNoLimit }, math.MaxInt64},
		{"no cgroups", func() (uint64, error) { return 0, errors.ErrUnsupported }, math.MaxInt64},
	} {
		t.Run(row.name, func(t *testing.T) {
			defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64))
			ContainMemory(slog.New(slog.DiscardHandler), row.limit)
			if got := debug.SetMemoryLimit(-1); got != row.want {
				t.Errorf("got %d, want %d", got, row.want)
			}
		})
	}
}

func TestTheLimitLeavesRoomBesideWhatLives(t *testing.T) {
	for _, row := range []struct {
		oneLane    bool
		live, want int64
	}{
		{false, 0, 100}, {false, 45, 100}, {false, 66, 100}, {false, 80, 120}, {false, 3000, 4500},
		{true, 0, 64}, {true, 40, 64}, {true, 41, 100}, {true, 80, 120},
	} {
		if got := memoryLimit(row.oneLane, uint64(row.live)<<20); got != row.want<<20 {
			t.Errorf("%d MiB for %d, one lane: %v", got>>20, row.live, row.oneLane)
		}
	}
}
