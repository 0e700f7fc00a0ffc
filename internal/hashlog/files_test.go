package hashlog

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// descriptors counts this process's open files in a directory.
func descriptors(t *testing.T, dir string) (open int) {
	t.Helper()
	const all = "/proc/self/fd"
	entries, err := os.ReadDir(all)
	if err != nil {
		t.Skipf("descriptors cannot be counted on %s: %v", runtime.GOOS, err)
	}
	for _, entry := range entries {
		if name, err := os.Readlink(filepath.Join(all, entry.Name())); err == nil &&
			strings.HasPrefix(name, dir) {
			open++
		}
	}
	return open
}

// However many files two logs have, few are open, while they are read, written, merged and dropped.
func TestFewFilesAreOpen(t *testing.T) {
	const limit, readers = 3, 2
	dir, files := t.TempDir(), NewFiles(limit)
	logs := make([]*Log, 2)
	for i := range logs {
		sub := filepath.Join(dir, fmt.Sprint(i))
		if err := os.Mkdir(sub, 0o700); err != nil {
			t.Fatal(err)
		}
		logs[i] = open(t, sub, Options{SegmentBytes: small, Disk: unsynced{}, Files: files})
		defer closeLog(t, logs[i])
	}
	var running sync.WaitGroup
	for first := 0; first < 5000; first += 100 {
		for _, l := range logs {
			put(t, l, first, 100, int64(first))
			if _, err := l.Drop(t.Context(), int64(first)-2000); err != nil {
				t.Fatal(err)
			}
		}
		for i := range readers {
			running.Go(func() { readSome(t, logs[i], max(0, first-1900), first+100) })
		}
		running.Wait()
	}
	for _, l := range logs {
		settle(t, l)
		if got := l.Stats(); got.Segments < 3*limit {
			t.Errorf("only %+v: the limit is not tested", got)
		}
		readSome(t, l, 3000, 5000)
	}
	if got, most := descriptors(t, dir), limit+len(logs); got > most {
		t.Errorf("%d files are open, want at most %d", got, most)
	}
}

func readSome(t *testing.T, l *Log, from, to int) {
	r := l.NewReader()
	for range 200 {
		key := from + rand.IntN(to-from)
		want := fmt.Sprintf("%d until %d", key, key/100*100)
		if value, _, err := r.Get(keyOf(key)); err != nil || string(value) != want {
			t.Errorf("key %d has %q, %v; want %q", key, value, err, want)
			return
		}
	}
}

// A file that is being read is not closed for another.
func TestMoreReadersThanTheLimitGoOn(t *testing.T) {
	dir, files := t.TempDir(), NewFiles(1)
	var all []*readFile
	for i := range 4 {
		name := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(name, []byte{byte(i)}, 0o600); err != nil {
			t.Fatal(err)
		}
		all = append(all, files.of(name))
	}
	for i, r := range all {
		file, err := r.acquire()
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			var got [1]byte
			if _, err := file.ReadAt(got[:], 0); err != nil || got[0] != byte(i) {
				t.Errorf("file %d has %v, %v", i, got, err)
			}
			r.release()
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}()
	}
}
