package hashlog

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/internal/testkit"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerEnv); dir != "" {
		writeForever(dir)
	}
	goleak.VerifyTestMain(m)
}

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
		if want := fmt.Sprintf("%d until %d", i, ends); err != nil || string(value) != want ||
			got != ends {
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
	testkit.Eventually(t, time.Minute, "all to be indexed and merged", func() bool {
		l.tending.Lock()
		defer l.tending.Unlock()
		if err := l.Err(); err != nil {
			t.Fatal(err)
		}
		indexes, lives := l.snapshot()
		return len(l.unindexed) == 0 && len(nextMerge(indexes, lives)) == 0
	})
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
	hash := l.key.Sum64(keyOf(7))
	l.mu.Lock()
	for _, e := range l.table.sorted() {
		l.table.add(entry{hash, e.at}, nil)
	}
	l.mu.Unlock()
	wantNone(t, l, 7, 1)
	put(t, l, 7, 1, 20)
	wantAll(t, l, 7, 1, 20)
}

// A key that is put again and again costs no more than another, in the newest segment and in an
// index.
func TestAKeyHasOneEntryInASegment(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{Disk: unsynced{}})
	for n := range 1000 {
		put(t, l, 7, 1, int64(n))
		put(t, l, n%5, 1, int64(n))
	}
	for _, where := range []string{"the table", "the table, read from the file"} {
		r := l.NewReader()
		if value, _, err := r.Get(keyOf(7)); err != nil || string(value) != "7 until 999" ||
			len(r.places) != 1 {
			t.Errorf("%s: %q, %v, at %d places", where, value, err, len(r.places))
		}
		if got := len(l.table.sorted()); got != 6 {
			t.Errorf("%s has %d entries, want 6", where, got)
		}
		closeLog(t, l)
		l = open(t, dir, Options{Disk: unsynced{}})
	}
	closeLog(t, l)
}

func TestManySegmentsHaveFewIndexes(t *testing.T) {
	l := open(t, t.TempDir(), Options{SegmentBytes: small, Disk: unsynced{}})
	defer closeLog(t, l)
	const keys = 6000
	for first := 0; first < keys; first += 50 {
		put(t, l, first, 50, 10)
	}
	settle(t, l)
	// Up to three of each size, and 120 segments make four sizes.
	if got := l.Stats(); got.Segments < 60 || got.Indexes > 3*4 {
		t.Errorf("got %+v", got)
	}
	wantAll(t, l, 0, keys, 10)
	wantNone(t, l, keys, keys)
}

// Files whose records have all ended go, and no others; and with them what is in memory for them.
func TestWhatHasEndedIsDropped(t *testing.T) {
	l := open(t, t.TempDir(), Options{SegmentBytes: small, Disk: unsynced{}})
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
	// A tenth of the records lives, and up to twice their share of the indexes: one is written
	// again when half of its segments are gone.
	if after.Segments > before.Segments/8 || after.Bytes > before.Bytes/7 {
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

func BenchmarkGetOfAKnownKey(b *testing.B) {
	const keys = 2_000_000 // of some 100 bytes, in seven segments
	l := open(b, b.TempDir(), Options{})
	defer closeLog(b, l)
	var batch Batch
	for first := 0; first < keys; first += 10_000 {
		batch.Reset()
		for i := first; i < first+10_000; i++ {
			batch.Put(keyOf(i), make([]byte, 60), 10)
		}
		appendAndSync(b, l, &batch)
	}
	settle(b, l)
	r, random := l.NewReader(), rand.New(rand.NewPCG(1, 0))
	b.ReportAllocs()
	for b.Loop() {
		if value, _, err := r.Get(keyOf(random.IntN(keys))); err != nil || len(value) != 60 {
			b.Fatal(value, err)
		}
	}
}
