package hashlog

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// colliding returns keys of one xxHash64, as anyone can make them: each step of it can be undone.
func colliding(t *testing.T, count int) [][]byte {
	const prime1, prime2 = 11400714785074694791, 14029467366897019727
	inverse := func(odd uint64) (x uint64) {
		for x = odd; odd*x != 1; x *= 2 - odd*x { // Newton's method
		}
		return x
	}
	mix := func(word uint64) uint64 { return bits.RotateLeft64(word*prime2, 31) * prime1 }
	unmix := func(word uint64) uint64 {
		return bits.RotateLeft64(word*inverse(prime1), -31) * inverse(prime2)
	}
	const prime4, prime5 = 9650029242287828579, 2870177450012600261
	keys := make([][]byte, count)
	for i := range keys {
		start := uint64(prime5) + 16
		state := bits.RotateLeft64(start^mix(uint64(i)), 27)*prime1 + prime4
		keys[i] = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(i)),
			unmix(state^0x1234))
		if got, want := xxhash.Sum64(keys[i]), xxhash.Sum64(keys[0]); got != want {
			t.Fatalf("key %d does not collide: %#x, %#x", i, got, want)
		}
	}
	return keys
}

// Keys that were made to collide in the hash of the first version cost no more than others.
func TestKeysCannotBeMadeToCollide(t *testing.T) {
	l := open(t, t.TempDir(), Options{Disk: unsynced{}})
	defer closeLog(t, l)
	r := l.NewReader()
	for i, key := range colliding(t, 60_000) {
		if value, _, err := r.Get(key); value != nil || err != nil {
			t.Fatal(value, err)
		}
		if len(r.places) > 2 {
			t.Fatalf("key %d: %d records have its hash", i, len(r.places))
		}
		var b Batch
		b.Put(key, []byte("value"), 10)
		appendAndSync(t, l, &b)
	}
}

func TestEveryLogHasAKeyOfItsOwn(t *testing.T) {
	dir := t.TempDir()
	l, other := open(t, dir, Options{}), open(t, t.TempDir(), Options{})
	defer closeLog(t, other)
	if l.key == other.key {
		t.Error("two logs have one key")
	}
	before := l.key
	closeLog(t, l)
	l = open(t, dir, Options{})
	defer closeLog(t, l)
	if l.key != before {
		t.Error("opened again, it has another key")
	}
}

// testdata/version1 was written by the version whose hashes had no key: keys 0 to 159, in two
// segments and one index.
func TestALogOfTheFirstVersionGoesOn(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/version1")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		l := open(t, dir, Options{SegmentBytes: small})
		wantAll(t, l, 0, 160, 1<<50)
		wantNone(t, l, 160, 40)
		put(t, l, 200, 100, 1<<50)
		wantAll(t, l, 200, 100, 1<<50)
		closeLog(t, l)
	}
}

// A crash while the indexes of the first version are made again, at any moment.
func TestAnInterruptedMigrationGoesOn(t *testing.T) {
	names, err := filepath.Glob("testdata/version1/*")
	if err != nil || len(names) != 4 {
		t.Fatal(names, err)
	}
	powerCutsWhileOpening(t, "testdata/version1", func(l *Log) { wantAll(t, l, 0, 160, 1<<50) })
}

func TestAManifestWithoutTheKeyIsDamaged(t *testing.T) {
	dir := filled(t)
	err := os.WriteFile(filepath.Join(dir, manifestName),
		[]byte(`{"version":2,"segments":[{"number":1}]}`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); !errors.Is(err, ErrDamaged) ||
		!strings.Contains(err.Error(), "no key") {
		t.Errorf("got %v", err)
	}
}
