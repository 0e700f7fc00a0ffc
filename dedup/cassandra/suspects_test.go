package cassandra

import (
	"math/rand/v2"
	"testing"
)

func indexes(n int) []int32 {
	all := make([]int32, n)
	for i := range all {
		all[i] = int32(i)
	}
	return all
}

func randomHashes(n int, seed uint64) []uint64 {
	random := rand.New(rand.NewPCG(seed, 0))
	hashes := make([]uint64, n)
	for i := range hashes {
		hashes[i] = random.Uint64()
	}
	return hashes
}

func TestWhatWasNotedLatelyIsSuspect(t *testing.T) {
	var s suspects
	hashes := randomHashes(10*mostSuspects/4, 1)
	s.note(hashes, indexes(len(hashes)))
	lately := hashes[len(hashes)-mostSuspects:]
	if _, others := s.split(lately, indexes(len(lately))); len(others) != 0 {
		t.Errorf("%d of the last %d are forgotten", len(others), len(lately))
	}
}

func TestFewOthersAreSuspect(t *testing.T) {
	var s suspects
	s.note(randomHashes(2*mostSuspects, 1), indexes(2*mostSuspects))
	others := randomHashes(mostSuspects, 2)
	found, _ := s.split(others, indexes(len(others)))
	if share := float64(len(found)) / mostSuspects; share == 0 || share > 1./200 {
		t.Errorf("%.5f of others are suspect", share)
	}
}

func TestAtFirstNothingIsSuspect(t *testing.T) {
	var s suspects
	if suspects, others := s.split(randomHashes(100, 1), indexes(100)); len(suspects) != 0 ||
		len(others) != 100 {
		t.Errorf("%d suspects, %d others", len(suspects), len(others))
	}
}

func BenchmarkSuspects(b *testing.B) {
	var s suspects
	known, claims := randomHashes(mostSuspects, 1), randomHashes(80, 2)
	s.note(known, indexes(len(known)))
	all := indexes(len(claims))
	b.ReportAllocs()
	for b.Loop() {
		s.split(claims, all)
	}
}
