package bloom_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kdedup/kdedup/internal/hashlog/bloom"
)

const many = 1 << 20

func hashes(n int, seed uint64) []uint64 {
	random := rand.New(rand.NewPCG(seed, 0))
	list := make([]uint64, n)
	for i := range list {
		list[i] = random.Uint64()
	}
	return list
}

func TestAFilterHasWhatWasAddedAndFewOthers(t *testing.T) {
	oneBucket := func(seed uint64) []uint64 {
		list := hashes(many, seed)
		for i := range list {
			list[i] = list[i]&^255 | 17
		}
		return list
	}
	for _, row := range []struct {
		name    string
		bits    int
		hashes  func(seed uint64) []uint64
		oneIn   float64
		toOneIn float64
	}{
		{"8 bits", 8, func(seed uint64) []uint64 { return hashes(many, seed) }, 20, 60},
		{"12 bits", 12, func(seed uint64) []uint64 { return hashes(many, seed) }, 150, 400},
		{"16 bits", 16, func(seed uint64) []uint64 { return hashes(many, seed) }, 600, 2000},
		{"16 bits, hashes of one of 256 buckets", 16, oneBucket, 600, 2000},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := bloom.New(many, row.bits)
			added := row.hashes(1)
			for _, h := range added {
				f.Add(h)
			}
			if i := slices.IndexFunc(added, func(h uint64) bool { return !f.Has(h) }); i >= 0 {
				t.Fatalf("hash %d is forgotten", i)
			}
			found := 0.
			for _, h := range row.hashes(2) {
				if f.Has(h) {
					found++
				}
			}
			if oneIn := many / found; oneIn < row.oneIn || oneIn > row.toOneIn {
				t.Errorf("it falsely has one in %.0f, want between %v and %v", oneIn, row.oneIn,
					row.toOneIn)
			}
		})
	}
}

func TestTheZeroFilterHasNothing(t *testing.T) {
	var f bloom.Filter
	if slices.ContainsFunc(hashes(100, 1), f.Has) {
		t.Error("it has something")
	}
}

func TestAFilterRoundTrips(t *testing.T) {
	f := bloom.New(1000, 16)
	for _, h := range hashes(1000, 1) {
		f.Add(h)
	}
	data := f.AppendTo([]byte("before"))
	got, err := bloom.Parse(data[len("before"):])
	if err != nil || !slices.Equal(got, f) {
		t.Errorf("got another filter, %v", err)
	}
	if _, err := bloom.Parse(data); err == nil {
		t.Error("a length that no filter has was read")
	}
}
