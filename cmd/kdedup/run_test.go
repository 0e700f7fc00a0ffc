package main

import (
	"runtime/debug"
	"testing"
)

func TestLessGarbageIsLeftUnlessTheEnvironmentSaysOtherwise(t *testing.T) {
	const before = 123
	for environment, want := range map[string]int{"": garbagePercent, "200": before} {
		t.Run("GOGC="+environment, func(t *testing.T) {
			t.Setenv("GOGC", environment)
			defer debug.SetGCPercent(debug.SetGCPercent(before))
			collectEarlier()
			if got := debug.SetGCPercent(before); got != want {
				t.Errorf("got %d, want %d", got, want)
			}
		})
	}
}
