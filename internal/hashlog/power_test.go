package hashlog

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/kdedup/kdedup/internal/testkit/powercut"
)

// TestPowerCuts cuts the power at random moments of random work, also while the log is opened
// again, and compares what is left with what was synced. A seed replays exactly: KDEDUP_POWER_SEED
// names one, KDEDUP_POWER_CUTS how many cuts it makes.
func TestPowerCuts(t *testing.T) {
	powercut.Seeds(t, 2, 100, func(t *testing.T, random *rand.Rand, cuts int) {
		p := &powerTrial{Trial: powercut.Trial{T: t, Random: random}, keys: map[int]versions{}}
		for range cuts {
			p.workUntilTheCut()
		}
	})
}

// versions are what a key may have: the last that was synced, and those that were appended later.
type versions []modelRecord

const powerKeys = 400

type powerTrial struct {
	powercut.Trial
	log    *Log // nil: not open
	reader *Reader
	now    int64
	keys   map[int]versions
}

func (p *powerTrial) options() Options {
	return Options{SegmentBytes: 1 << 10, Disk: p.Disk, ManualMaintenance: true,
		Shape: anyShape(p.Random)}
}

// workUntilTheCut works on the files that the last cut left, until the next one.
func (p *powerTrial) workUntilTheCut() {
	p.UntilTheCut([]int{8, 60, 400}, p.open, p.step)
	if p.log != nil {
		_ = p.log.Close() // closes its files, and writes nothing any more
		p.log = nil
	}
}

// open opens the log, which must succeed while there is power, and settles what every key has.
func (p *powerTrial) open() (err error) {
	if p.log, err = Open(p.Dir, p.options()); err != nil {
		return err
	}
	p.reader = p.log.NewReader()
	for key, want := range p.keys {
		got := p.get(key)
		if !slices.Contains(want, got) && !p.ended(want, got) {
			p.T.Fatalf("key %d has %+v, want one of %+v; now %d", key, got, want, p.now)
		}
		p.keys[key] = versions{got}
	}
	return nil
}

// ended tells whether a key may have nothing, or something older, because what it had has ended.
func (p *powerTrial) ended(want versions, got modelRecord) bool {
	return got.ends <= p.now && slices.ContainsFunc(want, func(v modelRecord) bool {
		return v.ends <= p.now
	})
}

func (p *powerTrial) get(key int) modelRecord {
	value, ends, err := p.reader.Get(mixedKey(key))
	if err != nil {
		p.T.Fatalf("key %d: %v", key, err)
	}
	return modelRecord{string(value), ends}
}

func (p *powerTrial) step() error {
	switch n := p.Random.IntN(100); {
	case n < 65:
		return p.append()
	case n < 70:
		p.now += p.Random.Int64N(20)
		return nil
	case n < 80:
		if _, err := p.log.Drop(p.T.Context(), p.now); err != nil {
			return err
		}
		return p.tend() // a segment may wait for its index
	case n < 95:
		return p.tend()
	case n < 98:
		p.check()
		return nil
	default:
		err := p.log.Close()
		p.log = nil
		if err != nil {
			return err
		}
		return p.open()
	}
}

func (p *powerTrial) tend() error { return p.log.Tend(p.T.Context()) }

// append appends a batch, mostly syncs it, and leaves room for another segment.
func (p *powerTrial) append() error {
	var b Batch
	for range 1 + p.Random.IntN(8) {
		key := p.Random.IntN(powerKeys)
		last := latest(p.keys[key])
		if last.value != "" && p.Random.IntN(4) == 0 {
			b.Delete(mixedKey(key), last.ends)
			p.note(key, modelRecord{})
			continue
		}
		record := modelRecord{fmt.Sprint(p.Random.Uint64()) + "common-part-",
			max(last.ends, p.now+25*p.Random.Int64N(4))}
		b.Put(mixedKey(key), []byte(record.value), record.ends)
		p.note(key, record)
	}
	return p.write(&b)
}

// note adds what a key may have from now on: of a batch, a cut leaves any beginning.
func (p *powerTrial) note(key int, record modelRecord) {
	if len(p.keys[key]) == 0 {
		p.keys[key] = versions{{}}
	}
	p.keys[key] = append(p.keys[key], record)
}

func latest(v versions) modelRecord {
	if len(v) == 0 {
		return modelRecord{}
	}
	return v[len(v)-1]
}

func (p *powerTrial) write(b *Batch) error {
	mark, err := p.log.Append(p.T.Context(), b)
	if err == nil && p.Random.IntN(4) > 0 {
		if err = p.log.Sync(p.T.Context(), mark); err == nil {
			p.synced()
		}
	}
	if err == nil && len(p.log.unindexed) == mostUnindexed {
		return p.tend()
	}
	return err
}

// synced settles all keys: a sync is for all that was appended before.
func (p *powerTrial) synced() {
	for key, v := range p.keys {
		p.keys[key] = versions{latest(v)}
	}
}

// check compares what the log has in memory and in files with all that was appended.
func (p *powerTrial) check() {
	p.T.Helper()
	for _, key := range slices.Sorted(maps.Keys(p.keys)) {
		want := versions{latest(p.keys[key])}
		if got := p.get(key); got != want[0] && !p.ended(want, got) {
			p.T.Fatalf("key %d has %+v, want %+v; now %d", key, got, want[0], p.now)
		}
	}
}

// powerCutsWhileOpening cuts the power at every moment of opening a copy of a directory, and opens
// what is left.
func powerCutsWhileOpening(t *testing.T, from string, check func(*Log)) {
	t.Helper()
	for moment, done := 0, false; !done; moment++ {
		dir, after := t.TempDir(), t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		disk, err := powercut.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		disk.CutAfter(moment)
		l, err := Open(dir, Options{Disk: disk, ManualMaintenance: true})
		if done = err == nil; done {
			_ = l.Close()
		} else if !errors.Is(err, powercut.ErrPower) {
			t.Fatal(err)
		}
		if err := disk.Restore(after, rand.New(rand.NewPCG(uint64(moment), 0))); err != nil {
			t.Fatal(err)
		}
		l = open(t, after, Options{})
		check(l)
		closeLog(t, l)
	}
}
