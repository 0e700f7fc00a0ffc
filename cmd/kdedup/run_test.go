package main

import (
	"runtime/debug"
	"testing"

	"github.com/kdedup/kdedup/config"
)

func TestLessGarbageIsLeftUnlessTheEnvironmentSaysOtherwise(t *testing.T) {
	const before = 123
	for _, row := range []struct {
		store, environment string
		want               int
	}{
		{config.StoreCassandra, "", garbagePercent},
		{config.StoreRedis, "", garbagePercent},
		{config.StoreEmbedded, "", before},
		{config.StoreCassandra, "200", before},
	} {
		t.Run(row.store+" GOGC="+row.environment, func(t *testing.T) {
			t.Setenv("GOGC", row.environment)
			defer debug.SetGCPercent(debug.SetGCPercent(before))
			collectEarlier(row.store)
			if got := debug.SetGCPercent(before); got != row.want {
				t.Errorf("got %d, want %d", got, row.want)
			}
		})
	}
}
