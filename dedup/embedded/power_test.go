package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/testkit/powercut"
)

// TestPowerCuts cuts the power at random moments of random work on a store: first start, new scopes,
// claims, releases, sweeps, indexes, merges, forgotten scopes, and opening it again. What was answered stands,
// and the store always opens. A seed replays exactly: KDEDUP_POWER_SEED names one, KDEDUP_POWER_CUTS how
// many cuts it makes.
func TestPowerCuts(t *testing.T) {
	seeds, cuts := []uint64{0, 1, 2, 3}, 30
	if text := os.Getenv("KDEDUP_POWER_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seeds = []uint64{seed}
	}
	if text := os.Getenv("KDEDUP_POWER_CUTS"); text != "" {
		var err error
		if cuts, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			p := &powerTrial{t: t, random: rand.New(rand.NewPCG(seed, 3)), now: time.Unix(1_000_000, 0), owners: map[powerKey]owners{}}
			for range cuts {
				p.workUntilTheCut()
			}
		})
	}
}

// powerKey is an ID of one scope.
type powerKey struct{ scope, id int }

// owners are who may own an ID: the last one that was answered, and those of calls that were not. 0 is nobody.
type owners []int64

const (
	powerScopes = 3
	powerIDs    = 200
)

type powerTrial struct {
	t      *testing.T
	random *rand.Rand
	dir    string
	disk   *powercut.Disk
	store  *Store // nil: not open
	now    time.Time
	offset int64 // of the last claim
	owners map[powerKey]owners

	appends int // since segments were indexed
}

func (p *powerTrial) workUntilTheCut() {
	p.restore()
	p.disk.CutAfter(p.random.IntN([]int{15, 100, 500}[p.random.IntN(3)]))
	err := p.open()
	for err == nil {
		err = p.step()
	}
	if !errors.Is(err, powercut.ErrPower) {
		p.t.Fatalf("before the cut: %v", err)
	}
	if p.store != nil {
		_ = p.store.Close() // closes its files, and writes nothing any more
		p.store = nil
	}
}

func (p *powerTrial) restore() {
	into := p.t.TempDir()
	if p.disk != nil {
		if err := errors.Join(p.disk.Restore(into, p.random), os.RemoveAll(p.dir)); err != nil {
			p.t.Fatal(err)
		}
	}
	disk, err := powercut.Open(into)
	if err != nil {
		p.t.Fatal(err)
	}
	p.dir, p.disk = into, disk
}

// open opens the store, in a directory whose parents may be missing, and settles who owns what.
func (p *powerTrial) open() (err error) {
	start := p.now
	p.store, err = Open(Options{
		Path: filepath.Join(p.dir, "var", "lib", "store"), Logger: slog.New(slog.DiscardHandler), SweepInterval: -1,
		Now: func() time.Time { return p.now }, elapsed: func() time.Duration { return p.now.Sub(start) }, disk: p.disk, untended: true, segmentBytes: 1 << 10,
	})
	if err != nil {
		return err
	}
	p.appends = 0
	for key, want := range p.owners {
		answer, err := p.store.Lookup(p.t.Context(), powerScope(key.scope), key.claim(0).ID)
		if err != nil {
			return err // what was read waits for a sync that does not come
		}
		got := answer.Owner.Offset
		if !slices.Contains(want, got) {
			p.t.Fatalf("%+v is owned by %d, want one of %d", key, got, want)
		}
		p.owners[key] = owners{got}
	}
	return nil
}

func powerScope(n int) dedup.Scope {
	return dedup.Scope{ConsumerGroup: "g", Name: fmt.Sprint("t", n), TTL: time.Hour, Buckets: 1, Extractor: "key"}
}

func (k powerKey) claim(offset int64) dedup.Claim {
	return dedup.Claim{ID: dedup.ID(fmt.Sprint("id-", k.id)), Owner: dedup.Coordinates{Offset: offset}}
}

func (p *powerTrial) step() error {
	scope := p.random.IntN(powerScopes)
	switch n := p.random.IntN(100); {
	case n < 60:
		return p.claim(scope)
	case n < 65:
		return p.release(powerKey{scope, p.random.IntN(powerIDs)})
	case n < 70:
		return p.store.Register(p.t.Context(), powerScope(scope))
	case n < 85:
		return p.tend()
	case n < 88:
		p.end()
		return nil
	case n < 94:
		if _, err := p.store.sweep(p.t.Context()); err != nil {
			return err
		}
		return p.tend()
	case n < 96:
		return p.forget(scope)
	default:
		err := p.store.Close()
		p.store = nil
		if err != nil {
			return err
		}
		return p.open()
	}
}

// claim compares the answers with what is known, or, without answers, with nothing.
func (p *powerTrial) claim(scope int) error {
	var keys []powerKey
	var list []dedup.Claim
	for range 1 + p.random.IntN(10) {
		key := powerKey{scope, p.random.IntN(powerIDs)}
		if !slices.Contains(keys, key) {
			p.offset++
			keys, list = append(keys, key), append(list, key.claim(p.offset))
		}
	}
	answers, err := p.store.Claim(p.t.Context(), powerScope(scope), list)
	for i, key := range keys {
		known := p.known(key)
		if err != nil {
			if slices.Contains(known, 0) {
				p.owners[key] = append(known, list[i].Owner.Offset)
			}
			continue
		}
		want := known[0]
		if want == 0 {
			want = list[i].Owner.Offset
		}
		if got := answers[i].Owner.Offset; got != want || (answers[i].Outcome == dedup.Applied) != (known[0] == 0) {
			p.t.Fatalf("%+v: %+v, want the owner %d", key, answers[i], want)
		}
		p.owners[key] = owners{want}
	}
	if err != nil {
		return err
	}
	return p.makeRoom()
}

func (p *powerTrial) known(key powerKey) owners {
	if len(p.owners[key]) == 0 {
		return owners{0}
	}
	return p.owners[key]
}

func (p *powerTrial) release(key powerKey) error {
	err := p.store.Release(p.t.Context(), powerScope(key.scope), key.claim(0).ID)
	if err != nil {
		p.owners[key] = append(p.known(key), 0)
		return err
	}
	p.owners[key] = owners{0}
	return p.makeRoom()
}

func (p *powerTrial) forget(scope int) error {
	err := p.store.Forget(p.t.Context(), powerScope(scope))
	for key := range p.owners {
		if key.scope == scope && err == nil {
			p.owners[key] = owners{0}
		} else if key.scope == scope {
			p.owners[key] = append(p.known(key), 0)
		}
	}
	return err
}

// end lets all claims end.
func (p *powerTrial) end() {
	p.now = p.now.Add(61 * time.Minute)
	clear(p.owners)
}

func (p *powerTrial) tend() error {
	p.appends = 0
	for _, state := range p.store.states() {
		if err := state.claims.Tend(p.t.Context()); err != nil {
			return err
		}
	}
	return nil
}

// makeRoom tends before so many segments have no index that an append waits for one.
func (p *powerTrial) makeRoom() error {
	if p.appends++; p.appends < 2 {
		return nil
	}
	return p.tend()
}
