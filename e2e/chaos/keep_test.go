package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// keepAs is what the processes keep of a claim log: "" is drawn by the seed, all or shared is that
// in all of them.
const (
	keepAll    = "all"
	keepShared = "shared"
	keepNone   = "none"
)

// keepers says what each process keeps, and how many keep each shard. The first process keeps
// shards unless all of them keep all, so that those without find somebody to ask.
func keepers(seed uint64, keepAs string, count int) (keeps []string, copies int) {
	random := rand.New(rand.NewPCG(seed, 45))
	copies = 1 + random.IntN(2)
	for process := range count {
		keep := []string{keepShared, keepNone, keepAll}[random.IntN(3)]
		if keepAs != "" {
			keep = keepAs
		} else if process == 0 {
			keep = keepShared
		}
		keeps = append(keeps, keep)
	}
	return keeps, copies
}

// keepersSection is a part of the section of the store, in braces.
func keepersSection(keep string, copies int) string {
	if keep == keepAll {
		return "{keep: all}"
	}
	return fmt.Sprintf("{keep: %s, copies: %d, listen: '127.0.0.1:0', "+
		"secret: 0123456789abcdef0123456789abcdef}", keep, copies)
}

func TestEverySeedHasSomebodyWhoKeepsAndTheyDiffer(t *testing.T) {
	seen := make(map[string]bool)
	for seed := range uint64(100) {
		keeps, copies := keepers(seed, "", processes)
		if !slices.Contains(keeps, keepShared) || copies < 1 || copies > 2 {
			t.Errorf("seed %d: %v, %d copies", seed, keeps, copies)
		}
		for _, keep := range keeps {
			seen[keep] = true
		}
		if again, _ := keepers(seed, "", processes); !slices.Equal(keeps, again) {
			t.Errorf("seed %d draws %v and %v", seed, keeps, again)
		}
	}
	if len(seen) != 3 {
		t.Errorf("only %v are drawn", seen)
	}
	if keeps, _ := keepers(1, keepAll, 2); !slices.Equal(keeps, []string{keepAll, keepAll}) {
		t.Errorf("all keep all: %v", keeps)
	}
}
