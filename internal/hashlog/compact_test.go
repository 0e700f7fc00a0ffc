package hashlog

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/kdedup/kdedup/internal/hashlog/siphash"
)

var testShape = Shape{KeyPrefix: 4, ValueSuffix: 12}

// anyShape is that of one opening of a log.
func anyShape(random *rand.Rand) *Shape {
	if random.IntN(2) == 0 {
		return nil
	}
	return &testShape
}

// mixedKey is a key of any kind: that ends with a UUID, or nearly, or is shorter than any prefix.
func mixedKey(i int) []byte {
	uuid := fmt.Sprintf("%08x-0000-7000-8000-%012x", i*2654435761%(1<<32), i)
	switch i % 6 {
	case 0:
		return keyOf(i)
	case 1:
		return []byte("one:" + uuid)
	case 2:
		return []byte("two:and more" + uuid)
	case 3:
		return []byte("one:" + string(bytes.ToUpper([]byte(uuid))))
	case 4:
		return []byte(uuid)
	default:
		return fmt.Appendf(nil, "%x", i)
	}
}

// claimKey and claimValue are as those of a claim log: a tag and a UUID, 18 bytes of its own and 46
// that are common.
func claimKey(i int) []byte {
	random := rand.New(rand.NewPCG(uint64(i), 7))
	return fmt.Appendf(nil, "the-tag:%08x-%04x-4%03x-8%03x-%012x", random.Uint32(),
		random.IntN(1<<16), random.IntN(1<<12), random.IntN(1<<12), random.Int64N(1<<48))
}

func claimValue(i, block int) []byte {
	return append(fmt.Appendf(nil, "%018d", i), bytes.Repeat([]byte{byte(block)}, 46)...)
}

var claimShape = Shape{KeyPrefix: 8, ValueSuffix: 46}

// putClaims appends blocks of claims of keys from first on.
func putClaims(t *testing.T, l *Log, first, blocks, each int) {
	t.Helper()
	for block := range blocks {
		var b Batch
		for i := first + block*each; i < first+(block+1)*each; i++ {
			b.Put(claimKey(i), claimValue(i, block), int64(1000+block))
		}
		appendAndSync(t, l, &b)
	}
}

func TestACompactSegmentTakesAThirdOfTheBytes(t *testing.T) {
	for each, most := range map[int]float64{2000: 44, 100: 45, 10: 55, 2: 78, 1: 104} {
		l := open(t, t.TempDir(), Options{Shape: &claimShape})
		const blocks = 20
		putClaims(t, l, 0, blocks, each)
		// a plain record takes 20+44+64 bytes; each block has a note of what was synced before it
		took := float64(l.Stats().Bytes)/float64(blocks*each) - 16/float64(each)
		if took > most {
			t.Errorf("blocks of %d: %.1f bytes a record, want at most %.0f", each, took, most)
		}
		r := l.NewReader()
		for i := range blocks * each {
			value, ends, err := r.Get(claimKey(i))
			if block := i / each; err != nil || ends != int64(1000+block) ||
				!bytes.Equal(value, claimValue(i, block)) {
				t.Fatalf("claim %d of blocks of %d: %q until %d, %v", i, each, value, ends, err)
			}
		}
		closeLog(t, l)
	}
}

// The files of an earlier version are read, and those that follow are compact.
func TestALogGetsAShape(t *testing.T) {
	for _, before := range []int{0, 10, 1000} {
		dir := t.TempDir()
		l := open(t, dir, Options{SegmentBytes: small})
		put(t, l, 0, before, 10)
		closeLog(t, l)
		for first := before; first < before+3000; first += 1000 {
			l = open(t, dir, Options{SegmentBytes: small, Shape: &testShape})
			put(t, l, first, 1000, 10)
			wantAll(t, l, 0, first+1000, 10)
			settle(t, l)
			wantAll(t, l, 0, first+1000, 10)
			closeLog(t, l)
		}
		for _, name := range segments(t, dir) { // their indexes are made again of all of them
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if newest := name == segments(t, dir)[len(segments(t, dir))-1]; newest &&
				!isCompact(data) {
				t.Errorf("%s is not compact", name)
			}
		}
		indexes, err := filepath.Glob(filepath.Join(dir, "index-*"))
		for _, name := range indexes {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
		if err != nil || len(indexes) == 0 {
			t.Fatal(err, indexes)
		}
		l = open(t, dir, Options{SegmentBytes: small, Shape: &testShape})
		wantAll(t, l, 0, before+3000, 10)
		closeLog(t, l)
	}
}

// Whatever byte of a compact segment is wrong, no key has another value than it had: what depends
// on the byte is an error.
func TestADamagedCompactSegmentTellsNothingWrong(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{Shape: &claimShape})
	defer closeLog(t, l)
	putClaims(t, l, 0, 3, 4)
	name := segments(t, dir)[0]
	good, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	r := l.NewReader()
	wrong := 0
	for at := len(compactMagic); at < len(good); at++ {
		bad := bytes.Clone(good)
		bad[at] ^= 1 << (at % 8)
		if err := os.WriteFile(name, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		for i := range 12 {
			value, ends, err := r.Get(claimKey(i))
			if err != nil {
				wrong++
				continue
			}
			if !bytes.Equal(value, claimValue(i, i/4)) || ends != int64(1000+i/4) {
				t.Fatalf("byte %d: claim %d has %q until %d", at, i, value, ends)
			}
		}
	}
	if err := os.WriteFile(name, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if wrong < len(good)-100 {
		t.Errorf("only %d look-ups failed, of %d bytes", wrong, len(good))
	}
}

func FuzzParseCompact(f *testing.F) {
	var b Batch
	for i := range 4 {
		b.Put(claimKey(i), claimValue(i, 1), 7)
	}
	b.Put(keyOf(1), nil, 8)
	b.encode(new(siphash.Key), &claimShape)
	f.Add(b.data, 0)
	for _, e := range b.entries {
		f.Add(b.data, int(e.at.offset()))
	}
	f.Fuzz(func(t *testing.T, data []byte, at int) {
		if at < 0 || at > len(data) {
			return
		}
		var memory []byte
		r, length, err := parseCompact(data, at, &memory)
		if err != nil {
			return
		}
		var b Batch
		b.Put(r.key, r.value, r.ends)
		b.encode(new(siphash.Key), &claimShape)
		var again []byte
		same, _, err := parseCompact(b.data, 0, &again)
		if err != nil || !bytes.Equal(same.key, r.key) || !bytes.Equal(same.value, r.value) ||
			same.ends != r.ends || length > len(data)-at {
			t.Errorf("%x at %d: %+v and %+v, %v", data, at, r, same, err)
		}
	})
}
