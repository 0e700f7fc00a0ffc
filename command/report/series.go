package report

import "slices"

// series counts records and copies over time, in bars of equal width. The width grows with the time
// that is covered, so that there are never more than maxBars.
type series struct {
	width int // index into barWidths
	bars  map[int64]bar
	low   int64
	high  int64
}

type bar struct{ records, copies int64 }

const maxBars = 120

// barWidths are in milliseconds; each is a multiple of the one before, so that bars can be joined.
var barWidths = slices.Concat(
	[]int64{1_000, 5_000, 10_000, 30_000, 60_000, 300_000, 600_000, 1_800_000, 3_600_000,
		10_800_000, 21_600_000, 43_200_000, day},
	[]int64{2 * day, 4 * day, 8 * day, 32 * day, 128 * day, 512 * day, 2048 * day, 1 << 20 * day},
)

const day = int64(86_400_000)

func newSeries() *series { return &series{bars: make(map[int64]bar)} }

func (s *series) add(at, records, copies int64) {
	number := floorDiv(at, barWidths[s.width])
	if len(s.bars) == 0 {
		s.low, s.high = number, number
	}
	s.low, s.high = min(s.low, number), max(s.high, number)
	b := s.bars[number]
	s.bars[number] = bar{b.records + records, b.copies + copies}
	for s.high-s.low >= maxBars && s.width < len(barWidths)-1 {
		s.widen()
	}
}

func (s *series) widen() {
	times := barWidths[s.width+1] / barWidths[s.width]
	s.width++
	joined := make(map[int64]bar)
	for number, b := range s.bars {
		to := joined[floorDiv(number, times)]
		joined[floorDiv(number, times)] = bar{to.records + b.records, to.copies + b.copies}
	}
	s.bars, s.low, s.high = joined, floorDiv(s.low, times), floorDiv(s.high, times)
}

// peak is the largest number of records in a bar, per second.
func (s *series) peak() float64 {
	top := int64(0)
	for _, b := range s.bars {
		top = max(top, b.records)
	}
	return float64(top) * 1000 / float64(barWidths[s.width])
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
