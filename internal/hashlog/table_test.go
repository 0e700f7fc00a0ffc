package hashlog

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestATableSortsItsEntries(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	for name, hash := range map[string]func(i int) uint64{
		"random hashes": func(int) uint64 { return random.Uint64() },
		"the last ones, which go on at first": func(i int) uint64 {
			return math.MaxUint64 - uint64(random.IntN(50))
		},
		"first and last ones": func(i int) uint64 {
			return uint64(-random.IntN(2)) ^ uint64(random.IntN(50))
		},
		"one hash": func(int) uint64 { return 1 << 40 },
	} {
		for _, n := range []int{0, 1, leastSlots/4*3 + 1, 5 * leastSlots} {
			small, sized := newTable(0), newTable(n)
			var want []entry
			for i := range n {
				e := entry{hash(i), placeOf(1, int64(i))}
				small.add(e, nil)
				sized.add(e, nil)
				want = append(want, e)
			}
			slices.SortFunc(want, compareEntries)
			for size, table := range map[string]*table{"grown": small, "made for them": sized} {
				if got := table.sorted(); !slices.Equal(got, want) {
					t.Errorf("%s, %d entries, %s: not in order", name, n, size)
				}
			}
		}
	}
}

func TestATableMadeForSoManyEntriesDoesNotGrow(t *testing.T) {
	for n := 1; n < 5*leastSlots; n += 97 {
		table := newTable(n)
		slots := len(table.slots)
		for i := range n {
			table.add(entry{uint64(i) << 50, placeOf(1, int64(i))}, nil)
		}
		if len(table.slots) != slots {
			t.Fatalf("made for %d entries, it grew from %d slots to %d", n, slots, len(table.slots))
		}
	}
}

// BenchmarkSorted is what a full segment costs before its index is written.
func BenchmarkSorted(b *testing.B) {
	const entries = 300_000
	table := newTable(entries)
	random := rand.New(rand.NewPCG(1, 0))
	for i := range entries {
		table.add(entry{random.Uint64(), placeOf(1, int64(i))}, nil)
	}
	b.ReportAllocs()
	for b.Loop() {
		if len(table.sorted()) != entries {
			b.Fatal("some are missing")
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/entries, "ns/entry")
}
