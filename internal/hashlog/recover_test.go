package hashlog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kdedup/kdedup/internal/durable"
)

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
		"part of a header": whole[:7], "part of a record": whole[:len(whole)-1],
		"wrong bytes": damaged, "zeros": make([]byte, 100),
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
			for _, name := range indexes(t, dir) {
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
	for name, file := range map[string]string{"a page": "index-*",
		"a record": "segment-0000000001"} {
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
		"a full segment is missing": {func(dir string) error {
			return os.Remove(filepath.Join(dir, segmentName(2)))
		}, "segment-0000000002"},
		"a full segment is shorter": {func(dir string) error {
			return os.Truncate(filepath.Join(dir, segmentName(2)), 100)
		}, "has 100 bytes"},
		"the last segment is missing": {func(dir string) error {
			names, err := filepath.Glob(filepath.Join(dir, "segment-*"))
			return errors.Join(err, os.Remove(slices.Max(names)))
		}, "bring it back"},
		"the last segment is shorter": {func(dir string) error {
			names, err := filepath.Glob(filepath.Join(dir, "segment-*"))
			return errors.Join(err, os.Truncate(slices.Max(names), 100))
		}, "only the first"},
		"the manifest is missing": {func(dir string) error {
			return os.Remove(filepath.Join(dir, manifestName))
		}, "MANIFEST is missing"},
		"the manifest is nonsense": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, manifestName), []byte("{"), 0o600)
		}, "MANIFEST"},
		"the manifest is of a later version": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, manifestName), []byte(`{"version":4}`), 0o600)
		}, "version 4, this program knows 3"},
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

// Only what no sync had covered may be cut off. A process that was killed has left no number in the
// manifest; the notes between the records tell.
func TestADamagedRecordThatWasSyncedIsNotATornTail(t *testing.T) {
	l := open(t, t.TempDir(), Options{})
	defer closeLog(t, l)
	for first := 0; first < 30; first += 10 {
		put(t, l, first, 10, 10)
	}
	killed := func(t *testing.T) (dir, last string) {
		dir = t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(l.dir)); err != nil {
			t.Fatal(err)
		}
		return dir, segments(t, dir)[0]
	}
	t.Run("as it was", func(t *testing.T) {
		dir, _ := killed(t)
		l := open(t, dir, Options{})
		defer closeLog(t, l)
		wantAll(t, l, 0, 30, 10)
	})
	for _, place := range []int{len(segmentMagic), len(segmentMagic) + 5, 100, 500} {
		t.Run(fmt.Sprint("damaged at ", place), func(t *testing.T) {
			dir, last := killed(t)
			before, err := os.ReadFile(last)
			if err == nil {
				err = overwrite(last, place)
			}
			if err != nil {
				t.Fatal(err)
			}
			_, err = Open(dir, Options{})
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), last) ||
				!strings.Contains(err.Error(), "bring the file back") {
				t.Errorf("got %v", err)
			}
			if after, err := os.ReadFile(last); err != nil || len(after) != len(before) {
				t.Errorf("the file was cut off: %d of %d bytes, %v", len(after), len(before), err)
			}
		})
	}
}

// Earlier versions named a new segment before they had synced its first bytes, and a power cut took
// them.
func TestASegmentThatNeverGotItsFirstBytesIsBegunAgain(t *testing.T) {
	for name, data := range map[string][]byte{
		"empty": nil, "cut off": segmentMagic[:3], "zeros": make([]byte, 100),
		"a record that was not synced": appendRecord(make([]byte, len(segmentMagic)), keyOf(7),
			[]byte("value"), 10),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			manifest := []byte(`{"version":1,"segments":[{"number":1}],"indexes":null}`)
			err := errors.Join(os.WriteFile(filepath.Join(dir, manifestName), manifest, 0o600),
				os.WriteFile(filepath.Join(dir, segmentName(1)), data, 0o600))
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				l := open(t, dir, Options{})
				wantNone(t, l, 7, 1)
				put(t, l, 8, 1, 10)
				wantAll(t, l, 8, 1, 10)
				closeLog(t, l)
			}
		})
	}
}

// The manifest names a segment whose first bytes are durable, so that they cannot be torn.
func TestTheFirstBytesOfASegmentAreNotATornTail(t *testing.T) {
	l := open(t, t.TempDir(), Options{})
	defer closeLog(t, l)
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(l.dir)); err != nil {
		t.Fatal(err)
	}
	last := segments(t, dir)[0]
	if err := os.Truncate(last, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); !errors.Is(err, ErrDamaged) ||
		!strings.Contains(err.Error(), "bring the file back") {
		t.Errorf("got %v", err)
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
