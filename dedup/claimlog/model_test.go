package claimlog

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/hashlog"
)

var (
	modelSeed  = flag.Uint64("model.seed", 0, "replay this run of TestModel; 0: others each time")
	modelSteps = flag.Int("model.steps", 40_000, "length of a run of TestModel")
)

// modelProcess is a machine with its index, which may lag, restart, or find its log cut.
type modelProcess struct {
	dir     string // empty: in memory
	backup  string // of the claims in it; empty: none was made
	index   index
	machine *machine
}

// smallSegments has an index forget a little at a time.
const smallSegments = 500

func (p *modelProcess) start(t *testing.T, l *modelLog) {
	t.Helper()
	if p.index == nil {
		p.index = newMemoryIndex()
		if p.dir != "" {
			files, err := openFilesOf(p.dir, quietLog, hashlog.Options{SegmentBytes: smallSegments})
			if err != nil {
				t.Fatal(err)
			}
			p.index = files
		}
	}
	m, err := newMachine(p.index, fmt.Sprint(l.id), l.agreed)
	if err != nil {
		t.Fatal(err)
	}
	m.late = modelLateness
	p.machine = m
	for shard := range m.shards {
		s, ahead := &m.shards[shard], &m.ahead[shard]
		switch {
		case ahead.Epoch < 0:
			s.Next, ahead.Next = l.first[shard], l.first[shard]
		case s.Next < l.first[shard], !l.has(shard, *ahead):
			p.forget(t, l)
			return
		}
	}
}

func (p *modelProcess) forget(t *testing.T, l *modelLog) {
	t.Helper()
	if err := p.index.reset(); err != nil {
		t.Fatal(err)
	}
	p.start(t, l)
}

// kill leaves what was applied in the files; how far that is may be noted of an earlier time.
func (p *modelProcess) kill(t *testing.T) {
	t.Helper()
	if err := p.index.close(); err != nil {
		t.Fatal(err)
	}
	p.index = nil
}

// restore brings files back as a backup does that copied the claims first, and later how far they
// went; or it makes such a copy.
func (p *modelProcess) restore(t *testing.T, l *modelLog) {
	t.Helper()
	if p.dir == "" {
		return
	}
	claims := filepath.Join(p.dir, claimsName)
	if p.backup == "" {
		if err := p.index.save(t.Context(), p.index.mark(), p.machine.progress()); err != nil {
			t.Fatal(err)
		}
		p.backup = t.TempDir()
		copyFiles(t, filepath.Join(p.backup, claimsName), claims)
		return
	}
	p.kill(t)
	if err := errors.Join(os.RemoveAll(claims),
		os.Rename(filepath.Join(p.backup, claimsName), claims)); err != nil {
		t.Fatal(err)
	}
	p.backup = ""
	p.start(t, l)
	p.catchUp(t, l)
}

// copyFiles copies files of a process that runs, as a backup does: some are gone when it comes to
// them.
func copyFiles(t *testing.T, to, from string) {
	t.Helper()
	files, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(from, file.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, file.Name()), data, 0o600)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

// read applies some blocks of a shard, and compares every answer with the fold.
func (p *modelProcess) read(t *testing.T, l *modelLog, shard, most int) {
	t.Helper()
	s := &p.machine.shards[shard]
	entries := l.from(shard, s.Next)
	if len(entries) == 0 {
		return
	}
	f := l.foldTo(shard, s.Next)
	f.naive = false
	for _, e := range entries[:min(most, len(entries))] {
		var got []dedup.Answer
		p.apply(t, e.Entry, func(_ int, a dedup.Answer) { got = append(got, a) })
		if want := f.apply(l, e); want != nil && fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("shard %d, place %d: told %v, the log says %v", shard, e.At, got, want)
		}
	}
}

func (p *modelProcess) apply(t *testing.T, e Entry, tell func(int, dedup.Answer)) {
	t.Helper()
	told := func(blockID) func(int, dedup.Answer) { return tell }
	err := p.machine.apply(t.Context(), e, told)
	var other otherLogError
	if errors.As(err, &other) {
		p.machine.other[other.id] = true
		err = p.machine.apply(t.Context(), e, told)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// compare asks for every ID that ever was.
func (p *modelProcess) compare(t *testing.T, l *modelLog, ids []modelKey) {
	t.Helper()
	for shard := range l.shards {
		f := l.foldTo(shard, p.machine.shards[shard].Next)
		for _, k := range ids {
			if l.agreed.Key.shardOf(k.id, len(l.shards)) != shard {
				continue
			}
			want := dedup.Answer{}
			if owner, ok := f.owners[k]; ok && owner.ends > max(f.now, l.real) {
				want = owner.answer(dedup.Exists)
			}
			got, err := p.machine.lookup(shard, k.scope, dedup.ID(k.id), l.real)
			if err == nil && l.excused(shard, got, want, f.owners[k].ends) {
				continue
			}
			if err != nil || got != want {
				t.Fatalf("%v in shard %d: the index says %+v, the log %+v, %v", k, shard, got, want,
					err)
			}
			if err := f.promised(k); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// catchUp reads to the end without comparing: on the way an index that was ahead of its progress
// answers wrongly, and so it is not asked.
func (p *modelProcess) catchUp(t *testing.T, l *modelLog) {
	t.Helper()
	for shard := range l.shards {
		for _, e := range l.from(shard, p.machine.shards[shard].Next) {
			p.apply(t, e.Entry, nil)
		}
	}
}

// save does it as the space does. The clock by which an index forgets is right in the end.
func (p *modelProcess) save(t *testing.T, l *modelLog, drops bool) {
	t.Helper()
	saved := p.machine.progress()
	if err := p.index.save(t.Context(), p.index.mark(), saved); err != nil {
		t.Fatal(err)
	}
	if !drops {
		return
	}
	ended := min(saved.ended(modelLateness), l.real)
	if err := p.index.drop(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
}

// TestModel has several machines, some with files, read one log at their own pace while it grows,
// is cut, has gaps, loses its beginning, and is made again; while clocks are wrong, and files come
// back from a backup. At every step the index of each is the fold of what it has read, and that is
// what was promised.
func TestModel(t *testing.T) {
	seed := *modelSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("replay with -model.seed=%d -model.steps=%d", seed, *modelSteps)
	for left := *modelSteps; left > 0; left -= modelRun {
		runModel(t, seed, min(left, modelRun))
		seed++
	}
}

// modelRun is how many steps a log lives.
const modelRun = 20_000

func runModel(t *testing.T, seed uint64, steps int) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("this one run: -model.seed=%d -model.steps=%d", seed, steps)
		}
	}()
	r := rand.New(rand.NewPCG(seed, 0))
	l := &modelLog{agreed: agreement{Version: 1 + int(seed%2), ID: 1, Shards: 3,
		Key: hashKey{byte(seed)}}, id: 1, first: make([]int64, 3), next: make([]int64, 3),
		shards: make([][]modelEntry, 3), real: 1_000_000, unsure: make(map[int64]bool)}
	l.newest = l.agreed.Version > firstAgreement
	processes := []*modelProcess{{}, {dir: t.TempDir()}, {dir: t.TempDir()}}
	for _, p := range processes {
		p.start(t, l)
	}
	var ids []modelKey
	for _, scope := range []string{"orders", "payments"} {
		for i := range 12 {
			ids = append(ids, modelKey{scope, fmt.Sprint("id-", i)})
		}
	}
	for step := range steps {
		p := processes[r.IntN(len(processes))]
		switch n := r.IntN(1000); {
		case n < 500:
			l.grow(r, p.machine, ids)
		case n < 880:
			p.read(t, l, r.IntN(3), r.IntN(6)+1)
		case n < 930:
			p.compare(t, l, ids)
		case n < 960:
			p.save(t, l, n >= 945)
		case n < 970:
			p.kill(t)
			p.start(t, l)
			p.catchUp(t, l)
		case n < 973:
			p.restore(t, l)
		case n < 980:
			l.harm(r)
			for _, p := range processes {
				p.start(t, l) // each notices
				p.catchUp(t, l)
			}
		case n < 986 && l.newest:
			l.setClocks(r)
		case n < 987:
			l.newest = l.newest || step > steps/4
		}
	}
	for _, p := range processes {
		p.catchUp(t, l)
		p.compare(t, l, ids)
		if err := p.index.close(); err != nil {
			t.Error(err)
		}
	}
}
