package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// keepAs is what the processes keep of a claim log: "" is drawn by the seed, all or shared is that
// in all of them. With only or none lanes that keep nothing ask keepers without lanes: two of
// these, or one.
const (
	keepAll    = "all"
	keepShared = "shared"
	keepNone   = "none"
	keepOnly   = "only"
)

// keepers says what each process keeps, and how many keep each shard. The first process has lanes,
// and of the usual ones at least one keeps shards unless all of them keep all. So somebody
// forwards, and those without an index find somebody to ask.
func keepers(seed uint64, keepAs string, count int) (keeps []string, copies int) {
	random := rand.New(rand.NewPCG(seed, 45))
	copies = 1 + random.IntN(2)
	for process := range count {
		drawn := []string{keepShared, keepNone, keepAll, keepOnly}[random.IntN(4)]
		switch {
		case process == 1 && (keepAs == keepOnly || keepAs == keepNone),
			process == 2 && keepAs == keepOnly:
			drawn = keepOnly
		case keepAs == keepOnly, keepAs == keepNone:
			drawn = keepNone
		case keepAs != "":
			drawn = keepAs
		case process == 0:
			drawn = keepShared
		}
		keeps = append(keeps, drawn)
	}
	return keeps, copies
}

// share reports whether processes ask each other.
func (o options) share() bool { return o.store != inCassandra && o.keep != keepAll }

// keepersSection is a part of the section of the store, in braces. The others come to a keeper by a
// proxy.
func keepersSection(keep string, copies int, route servers.Route) string {
	if keep == keepAll {
		return "{keep: all}"
	}
	return fmt.Sprintf("{keep: %s, copies: %d, listen: %q, advertise: %q, "+
		"secret: 0123456789abcdef0123456789abcdef}", keep, copies, route.Upstream, route.Listen)
}

// keepersRoutes are the ways to the keepers, of which each process may be one.
func keepersRoutes() ([]servers.Route, error) {
	ports, err := servers.FreePorts("127.0.0.1", 2*processes)
	if err != nil {
		return nil, err
	}
	var routes []servers.Route
	for pair := range slices.Chunk(ports, 2) {
		routes = append(routes, servers.Route{Listen: fmt.Sprintf("127.0.0.1:%d", pair[0]),
			Upstream: fmt.Sprintf("127.0.0.1:%d", pair[1])})
	}
	return routes, nil
}

func TestEverySeedHasSomebodyWhoKeepsAndTheyDiffer(t *testing.T) {
	seen := make(map[string]bool)
	for seed := range uint64(100) {
		keeps, copies := keepers(seed, "", processes)
		if keeps[0] != keepShared || copies < 1 || copies > 2 {
			t.Errorf("seed %d: %v, %d copies", seed, keeps, copies)
		}
		for _, keep := range keeps {
			seen[keep] = true
		}
		if again, _ := keepers(seed, "", processes); !slices.Equal(keeps, again) {
			t.Errorf("seed %d draws %v and %v", seed, keeps, again)
		}
	}
	if len(seen) != 4 {
		t.Errorf("only %v are drawn", seen)
	}
	for keepAs, want := range map[string][]string{
		keepAll:    {keepAll, keepAll, keepAll, keepAll},
		keepShared: {keepShared, keepShared, keepShared, keepShared},
		keepOnly:   {keepNone, keepOnly, keepOnly, keepNone},
		keepNone:   {keepNone, keepOnly, keepNone, keepNone},
	} {
		if got, _ := keepers(1, keepAs, processes); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", keepAs, got, want)
		}
	}
}
