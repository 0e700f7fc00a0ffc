package hashlog

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzIndex: whatever an index file holds, reading it ends in places or an error.
func FuzzIndex(f *testing.F) {
	for _, name := range indexes(f, filled(f)) {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	name := filepath.Join(f.TempDir(), indexName(1))
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		l := &Log{dir: filepath.Dir(name), o: Options{}.withDefaults()}
		x, err := l.openIndex(indexRecord{Number: 1, First: 1, Last: 1})
		if err != nil {
			return
		}
		var p page
		for i := range 100 {
			_, _ = x.find(nil, &p, l.key.Sum64(keyOf(i)))
		}
		if err := x.read.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func indexes(t testing.TB, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "index-*"))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	return names
}
