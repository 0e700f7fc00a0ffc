package hashlog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/internal/durable"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// small segments make many files of few records.
const small = 4 << 10

func open(t testing.TB, dir string, o Options) *Log {
	t.Helper()
	l, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func closeLog(t testing.TB, l *Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func keyOf(i int) []byte { return fmt.Appendf(nil, "key-%06d", i) }

// put appends records of the keys from first on, with a value that tells the key and the end.
func put(t testing.TB, l *Log, first, count int, ends int64) {
	t.Helper()
	var b Batch
	for i := first; i < first+count; i++ {
		b.Put(keyOf(i), fmt.Appendf(nil, "%d until %d", i, ends), ends)
	}
	appendAndSync(t, l, &b)
}

func appendAndSync(t testing.TB, l *Log, b *Batch) {
	t.Helper()
	mark, err := l.Append(t.Context(), b)
	if err == nil {
		err = l.Sync(t.Context(), mark)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// wantAll checks the keys from first on.
func wantAll(t testing.TB, l *Log, first, count int, ends int64) {
	t.Helper()
	r := l.NewReader()
	for i := first; i < first+count; i++ {
		value, got, err := r.Get(keyOf(i))
		if want := fmt.Sprintf("%d until %d", i, ends); err != nil || string(value) != want || got != ends {
			t.Fatalf("key %d has %q until %d, %v; want %q", i, value, got, err, want)
		}
	}
}

func wantNone(t testing.TB, l *Log, first, count int) {
	t.Helper()
	r := l.NewReader()
	for i := first; i < first+count; i++ {
		if value, _, err := r.Get(keyOf(i)); err != nil || value != nil {
			t.Fatalf("key %d has %q, %v; want none", i, value, err)
		}
	}
}

// settle waits until there is nothing left to index or to merge.
func settle(t testing.TB, l *Log) {
	t.Helper()
	for {
		l.tending.Lock()
		l.mu.RLock()
		lives := func(segment uint32) bool { return l.segments[segment] != nil }
		done := len(l.full) == 0 && len(l.unindexed) == 0 && len(nextMerge(l.indexes, lives)) == 0
		l.mu.RUnlock()
		l.tending.Unlock()
		if done {
			return
		}
		if err := errors.Join(l.Err(), t.Context().Err()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestTheNewestRecordOfAKeyCounts(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{SegmentBytes: small})
	put(t, l, 0, 1000, 10)
	put(t, l, 500, 1000, 20)
	check := func() {
		t.Helper()
		wantAll(t, l, 0, 500, 10)
		wantAll(t, l, 500, 1000, 20)
		wantNone(t, l, 1500, 1000)
	}
	check()
	settle(t, l)
	check()
	closeLog(t, l)
	l = open(t, dir, Options{SegmentBytes: small})
	defer closeLog(t, l)
	check()
}

func TestADeletedKeyHasNoRecord(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{SegmentBytes: small})
	put(t, l, 0, 300, 10)
	var b Batch
	for i := range 100 {
		b.Delete(keyOf(i), 10)
	}
	appendAndSync(t, l, &b)
	put(t, l, 0, 50, 20)
	for range 2 {
		wantAll(t, l, 0, 50, 20)
		wantNone(t, l, 50, 50)
		wantAll(t, l, 100, 200, 10)
		closeLog(t, l)
		l = open(t, dir, Options{SegmentBytes: small})
	}
	closeLog(t, l)
}

func TestKeysOfOneHashAreToldApart(t *testing.T) {
	l := open(t, t.TempDir(), Options{})
	defer closeLog(t, l)
	put(t, l, 0, 2, 10)
	hash := hashOf(keyOf(7))
	l.mu.Lock()
	for _, e := range l.table.entries() {
		l.table.add(entry{hash, e.at})
	}
	l.mu.Unlock()
	wantNone(t, l, 7, 1)
	put(t, l, 7, 1, 20)
	wantAll(t, l, 7, 1, 20)
}

func TestManySegmentsHaveFewIndexes(t *testing.T) {
	l := open(t, t.TempDir(), Options{SegmentBytes: small, Create: unsynced})
	defer closeLog(t, l)
	const keys = 6000
	for first := 0; first < keys; first += 50 {
		put(t, l, first, 50, 10)
	}
	settle(t, l)
	if got := l.Stats(); got.Segments < 60 || got.Indexes > 10 {
		t.Errorf("got %+v", got)
	}
	wantAll(t, l, 0, keys, 10)
	wantNone(t, l, keys, keys)
}

// Files whose records have all ended go, and no others; and with them what is in memory for them.
func TestWhatHasEndedIsDropped(t *testing.T) {
	l := open(t, t.TempDir(), Options{SegmentBytes: small, Create: unsynced})
	defer closeLog(t, l)
	for first := 0; first < 10_000; first += 50 {
		put(t, l, first, 50, int64(first))
	}
	settle(t, l)
	before := l.Stats()
	if _, err := l.Drop(t.Context(), 9000); err != nil {
		t.Fatal(err)
	}
	settle(t, l)
	after := l.Stats()
	if after.Segments > before.Segments/8 || after.Bytes > before.Bytes/8 {
		t.Errorf("of %+v %+v is left", before, after)
	}
	wantNone(t, l, 0, 8500)
	for first := 9050; first < 10_000; first += 50 {
		wantAll(t, l, first, 50, int64(first))
	}
	if n, err := l.Drop(t.Context(), 9950); err != nil || n == 0 {
		t.Fatalf("dropped %d, %v", n, err)
	}
	settle(t, l)
	if _, err := l.Drop(t.Context(), 9950); err != nil { // the last segment had no index before
		t.Fatal(err)
	}
	settle(t, l)
	if got := l.Stats(); got.Segments != 1 || got.Bytes > 100 {
		t.Errorf("%+v is left, want one empty segment", got)
	}
}

func segments(t testing.TB, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "segment-*"))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	slices.Sort(names)
	return names
}

func filled(t testing.TB) (dir string) {
	t.Helper()
	dir = t.TempDir()
	l := open(t, dir, Options{SegmentBytes: small})
	for first := 0; first < 1010; first += 101 {
		put(t, l, first, 101, 10)
	}
	settle(t, l)
	closeLog(t, l)
	return dir
}

// Whatever a crash left behind the last synced record, all that was synced is there, and goes on.
func TestATornTailIsCutOff(t *testing.T) {
	whole := appendRecord(nil, keyOf(5000), []byte("torn"), 10)
	damaged := slices.Clone(whole)
	damaged[len(damaged)-1]++
	for name, tail := range map[string][]byte{
		"part of a header": whole[:7], "part of a record": whole[:len(whole)-1], "wrong bytes": damaged, "zeros": make([]byte, 100),
		"nonsense":                  []byte(strings.Repeat("nonsense", 20)),
		"a good one behind a bad":   append(slices.Clone(damaged), whole...),
		"the length of a long file": {0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filled(t)
			last := segments(t, dir)[len(segments(t, dir))-1]
			data, err := os.ReadFile(last)
			if err == nil {
				err = os.WriteFile(last, append(data, tail...), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				l := open(t, dir, Options{SegmentBytes: small})
				wantAll(t, l, 0, 1010, 10)
				wantNone(t, l, 5000, 1)
				put(t, l, 2000, 10, 10)
				wantAll(t, l, 2000, 10, 10)
				closeLog(t, l)
			}
		})
	}
}

func TestIndexesAreMadeAnew(t *testing.T) {
	for name, damage := range map[string]func(name string) error{
		"missing": os.Remove,
		"empty":   func(name string) error { return os.Truncate(name, 0) },
		"cut off": func(name string) error { return os.Truncate(name, 3000) },
		"wrong":   func(name string) error { return overwrite(name, -footBytes-20) },
		"another": func(name string) error { return overwrite(name, -footBytes) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filled(t)
			names, err := filepath.Glob(filepath.Join(dir, "index-*"))
			if err != nil || len(names) == 0 {
				t.Fatal(names, err)
			}
			for _, name := range names {
				if err := damage(name); err != nil {
					t.Fatal(err)
				}
			}
			l := open(t, dir, Options{SegmentBytes: small})
			defer closeLog(t, l)
			wantAll(t, l, 0, 1010, 10)
			wantNone(t, l, 1010, 1000)
		})
	}
}

// overwrite changes a byte; a negative offset counts from the end.
func overwrite(name string, offset int) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	data[(offset+len(data))%len(data)]++
	return os.WriteFile(name, data, 0o600)
}

func TestDamagedPagesAndRecordsAreNotBelieved(t *testing.T) {
	for name, file := range map[string]string{"a page": "index-*", "a record": "segment-0000000001"} {
		t.Run(name, func(t *testing.T) {
			dir := filled(t)
			names, err := filepath.Glob(filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				if err := overwrite(name, 60); err != nil {
					t.Fatal(err)
				}
			}
			l := open(t, dir, Options{SegmentBytes: small})
			defer closeLog(t, l)
			var failed error
			for i, r := 0, l.NewReader(); i < 1010 && failed == nil; i++ {
				_, _, failed = r.Get(keyOf(i))
			}
			if !errors.Is(failed, ErrDamaged) || !strings.Contains(failed.Error(), file[:5]) {
				t.Errorf("got %v", failed)
			}
		})
	}
}

func TestLostRecordsAreAnError(t *testing.T) {
	for name, row := range map[string]struct {
		damage func(dir string) error
		want   string
	}{
		"a full segment is missing": {func(dir string) error { return os.Remove(filepath.Join(dir, segmentName(2))) }, "segment-0000000002"},
		"a full segment is shorter": {func(dir string) error { return os.Truncate(filepath.Join(dir, segmentName(2)), 100) }, "has 100 bytes"},
		"the last segment is missing": {func(dir string) error {
			names, err := filepath.Glob(filepath.Join(dir, "segment-*"))
			return errors.Join(err, os.Remove(slices.Max(names)))
		}, "bring it back"},
		"the manifest is missing":  {func(dir string) error { return os.Remove(filepath.Join(dir, manifestName)) }, "MANIFEST is missing"},
		"the manifest is nonsense": {func(dir string) error { return os.WriteFile(filepath.Join(dir, manifestName), []byte("{"), 0o600) }, "MANIFEST"},
		"the manifest is of a later version": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, manifestName), []byte(`{"version":2}`), 0o600)
		}, "version 2, this program knows 1"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filled(t)
			if err := row.damage(dir); err != nil {
				t.Fatal(err)
			}
			_, err := Open(dir, Options{})
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}

func TestFilesThatWereNotFinishedAreDeleted(t *testing.T) {
	dir := filled(t)
	for _, name := range []string{segmentName(999), indexName(999), manifestName + durable.Suffix} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l := open(t, dir, Options{SegmentBytes: small})
	defer closeLog(t, l)
	wantAll(t, l, 0, 1010, 10)
	if names, _ := filepath.Glob(filepath.Join(dir, "*999*")); len(names) > 0 {
		t.Errorf("%v are left", names)
	}
}

// unsynced makes files that are not synced, which is faster.
func unsynced(name string) (File, error) {
	file, err := (Options{}).withDefaults().Create(name)
	return unsyncedFile{file}, err
}

type unsyncedFile struct{ File }

func (unsyncedFile) Sync() error { return nil }

// disk makes files whose writes and syncs can be made to fail or to wait.
type disk struct {
	full    atomic.Bool
	badSync atomic.Bool
	syncing chan struct{} // unless nil, a sync sends here and then waits for release
	release chan struct{}
}

type diskFile struct {
	File
	disk *disk
}

func (d *disk) create(name string) (File, error) {
	if d.full.Load() {
		return nil, syscall.ENOSPC
	}
	file, err := (Options{}).withDefaults().Create(name)
	return &diskFile{file, d}, err
}

func (f *diskFile) Write(p []byte) (int, error) {
	if f.disk.full.Load() {
		return 0, syscall.ENOSPC
	}
	return f.File.Write(p)
}

func (f *diskFile) Sync() error {
	if f.disk.badSync.Load() {
		return syscall.EIO
	}
	if f.disk.syncing != nil {
		f.disk.syncing <- struct{}{}
		<-f.disk.release
	}
	return f.File.Sync()
}

// What failed once is not tried again: the system may forget what it could not write, and call the
// next sync a success.
func TestAfterAFailureNothingIsAppended(t *testing.T) {
	for name, fail := range map[string]func(*disk, bool){
		"a full disk": func(d *disk, on bool) { d.full.Store(on) }, "a failed sync": func(d *disk, on bool) { d.badSync.Store(on) },
	} {
		t.Run(name, func(t *testing.T) {
			var d disk
			dir := t.TempDir()
			l := open(t, dir, Options{SegmentBytes: small, Create: d.create})
			put(t, l, 0, 20, 10)
			fail(&d, true)
			var b Batch
			b.Put(keyOf(20), []byte("lost"), 10)
			mark, err := l.Append(t.Context(), &b)
			if err == nil {
				err = l.Sync(t.Context(), mark)
			}
			fail(&d, false)
			_, again := l.Append(t.Context(), &b)
			if err == nil || again == nil || l.Err() == nil || l.Sync(t.Context(), mark) == nil {
				t.Errorf("got %v, then %v, and Err is %v", err, again, l.Err())
			}
			if l.Close() == nil {
				t.Error("it was closed as if nothing had happened")
			}
			l = open(t, dir, Options{SegmentBytes: small})
			defer closeLog(t, l)
			wantAll(t, l, 0, 20, 10)
		})
	}
}

func TestWhoAppendsMeanwhileSharesTheNextSync(t *testing.T) {
	var d disk
	l := open(t, t.TempDir(), Options{Create: d.create})
	defer closeLog(t, l)
	put(t, l, 0, 1, 10)
	d.syncing, d.release = make(chan struct{}, 100), make(chan struct{})
	const callers = 20
	done := make(chan error, callers)
	add := func(i int) {
		var b Batch
		b.Put(keyOf(i), []byte("value"), 10)
		mark, err := l.Append(t.Context(), &b)
		if err != nil {
			t.Error(err)
		}
		go func() { done <- l.Sync(t.Context(), mark) }()
	}
	add(1)
	select {
	case <-d.syncing:
	case err := <-done:
		t.Fatalf("answered without a sync: %v", err)
	}
	for i := range callers - 1 {
		add(2 + i)
	}
	select {
	case <-done:
		t.Error("a sync ended that was held up")
	default:
	}
	close(d.release)
	for range callers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n := len(d.syncing); n != 1 {
		t.Errorf("%d syncs after the first one, want 1 for all", n)
	}
	d.syncing = nil
}

func TestSyncEndsWithItsContext(t *testing.T) {
	var d disk
	l := open(t, t.TempDir(), Options{Create: d.create})
	d.syncing, d.release = make(chan struct{}, 100), make(chan struct{})
	var b Batch
	b.Put(keyOf(1), []byte("value"), 10)
	mark, err := l.Append(t.Context(), &b)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Sync(ctx, mark); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(d.release)
	closeLog(t, l)
}

// TestModel compares a log with a map, through random work, crashes and new starts.
func TestModel(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { newModel(t, seed).run(400) })
	}
}

type model struct {
	t      *testing.T
	random *rand.Rand
	dir    string
	log    *Log
	now    int64
	want   map[int]modelRecord
}

type modelRecord struct {
	value string
	ends  int64
}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{t: t, random: rand.New(rand.NewPCG(seed, 1)), dir: t.TempDir(), want: map[int]modelRecord{}}
	m.log = open(t, m.dir, Options{SegmentBytes: small, Create: unsynced})
	return m
}

func (m *model) run(steps int) {
	for range steps {
		switch n := m.random.IntN(100); {
		case n < 80:
			m.append()
		case n < 85:
			m.now += m.random.Int64N(20)
		case n < 94:
			if _, err := m.log.Drop(m.t.Context(), m.now); err != nil {
				m.t.Fatal(err)
			}
		case n < 97:
			m.check()
		case n < 99:
			m.reopen()
		default:
			m.crash()
		}
	}
	m.check()
	closeLog(m.t, m.log)
}

func (m *model) append() {
	var b Batch
	for range 1 + m.random.IntN(20) {
		key, ends := m.random.IntN(3000), m.now+m.random.Int64N(200)
		if old, found := m.want[key]; found && m.random.IntN(4) == 0 {
			b.Delete(keyOf(key), old.ends)
			delete(m.want, key)
			continue
		}
		ends = max(ends, m.want[key].ends)
		value := fmt.Sprintf("%d %s", m.random.Int(), strings.Repeat("x", m.random.IntN(100)))
		b.Put(keyOf(key), []byte(value), ends)
		m.want[key] = modelRecord{value, ends}
	}
	appendAndSync(m.t, m.log, &b)
}

func (m *model) check() {
	m.t.Helper()
	r := m.log.NewReader()
	for key := range 3000 {
		want := m.want[key]
		value, ends, err := r.Get(keyOf(key))
		ended := want.ends <= m.now && (value == nil || ends <= m.now)
		if err != nil || !ended && (string(value) != want.value || ends != want.ends) {
			m.t.Fatalf("key %d has %q until %d, %v; want %+v, now %d", key, value, ends, err, want, m.now)
		}
	}
}

func (m *model) reopen() {
	closeLog(m.t, m.log)
	m.log = open(m.t, m.dir, Options{SegmentBytes: small, Create: unsynced})
}

// crash goes on with a copy of the files as they were, with something half-written at the end.
func (m *model) crash() {
	settle(m.t, m.log)
	dir := m.t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(m.dir)); err != nil {
		m.t.Fatal(err)
	}
	closeLog(m.t, m.log)
	names := segments(m.t, dir)
	last, err := os.OpenFile(names[len(names)-1], os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		m.t.Fatal(err)
	}
	torn := appendRecord(nil, keyOf(1), []byte("never synced"), 1<<40)
	_, err = last.Write(torn[:m.random.IntN(len(torn))])
	if err := errors.Join(err, last.Close()); err != nil {
		m.t.Fatal(err)
	}
	m.dir = dir
	m.log = open(m.t, dir, Options{SegmentBytes: small, Create: unsynced})
}

func FuzzParseRecord(f *testing.F) {
	f.Add(appendRecord(nil, []byte("key"), []byte("value"), 7))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, length, err := parseRecord(data)
		if err != nil {
			return
		}
		if again := appendRecord(nil, r.key, r.value, r.ends); string(again) != string(data[:length]) {
			t.Errorf("%x became %x", data[:length], again)
		}
	})
}

func BenchmarkGetOfANewKey(b *testing.B) {
	l := open(b, b.TempDir(), Options{})
	defer closeLog(b, l)
	for first := 0; first < 1_000_000; first += 10_000 {
		put(b, l, first, 10_000, 10)
	}
	settle(b, l)
	r, n := l.NewReader(), 1_000_000
	b.ReportAllocs()
	for b.Loop() {
		n++
		if value, _, err := r.Get(keyOf(n)); err != nil || value != nil {
			b.Fatal(value, err)
		}
	}
}
