package report

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/kdedup/kdedup/command/idorder"
	"github.com/kdedup/kdedup/dedup"
)

// orderSample keeps an even sample of all IDs and when they came, to see what they look like and
// whether the order of their bytes is that of time. Forms alone do not tell the latter: a counter
// with leading zeros is ordered, and a UUIDv7 behind the name of one of many producers is not.
type orderSample struct {
	random *rand.Rand
	seen   int64
	ids    []idorder.Sampled // with the first sampleBytes of each
}

const (
	sampleSize  = 2000
	sampleBytes = 128
	sampleLeast = 100 // fewer IDs say nothing about their order

	// ordered is the least rank correlation (Kendall's tau: 1 the same order, 0 none) of IDs whose
	// order is that of time, but for what producers and partitions lag behind each other.
	ordered = 0.9
)

func newOrderSample() *orderSample {
	return &orderSample{random: rand.New(rand.NewPCG(1, 2))} // the same topic gives the same report
}

func (s *orderSample) add(id dedup.ID, at int64) {
	s.seen++
	if len(s.ids) < sampleSize {
		s.ids = append(s.ids, sample(id, at))
		return
	}
	if i := s.random.Int64N(s.seen); i < sampleSize {
		s.ids[i] = sample(id, at)
	}
}

// sample copies: an ID shares memory with its record.
func sample(id dedup.ID, at int64) idorder.Sampled {
	return idorder.Sampled{ID: strings.Clone(string(id[:min(len(id), sampleBytes)])), At: at}
}

// kinds returns the share of each kind, the largest first.
func (s *orderSample) kinds(now time.Time) []Kind {
	counts := make(map[string]int)
	for _, one := range s.ids {
		counts[KindOf([]byte(one.ID), now)]++
	}
	var all []Kind
	for name, n := range counts {
		all = append(all, Kind{Kind: name, Share: float64(n) / float64(len(s.ids))})
	}
	slices.SortFunc(all, func(a, b Kind) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Kind, b.Kind))
	})
	return all
}

// correlation is Kendall's tau of IDs and times. It is nil where there are too few.
func (s *orderSample) correlation() *float64 {
	if len(s.ids) < sampleLeast {
		return nil
	}
	same, pairs := idorder.Compare(s.ids)
	if pairs == 0 {
		return nil
	}
	tau := 2*float64(same)/float64(pairs) - 1
	return &tau
}
