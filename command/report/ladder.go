package report

import (
	"sort"
	"time"
)

// ladder knows how many copies each of a number of ttls would catch. It plays the store for all of
// them at once: a claim holds for the ttl, counted from the record that made it; the first copy
// after that is a new message, and claims again. A longer ttl never catches fewer copies.
type ladder struct {
	caught []int64 // by step, but for the copies in within
	// copies by the first step that is longer than their age, counted from the ID's first record
	within []int64
	owners []int64 // log times of the present ID's claims, by step
	used   int     // owners that were set; all other claims are still those of the first record
}

// steps are the ttls that can be advised, in milliseconds: values that people would write, and
// dense enough that above a few minutes none is more than a tenth longer than what is needed.
var steps = makeSteps()

func makeSteps() []int64 {
	var all []int64
	add := func(from, to, by time.Duration) {
		for d := from; d < to; d += by {
			all = append(all, d.Milliseconds())
		}
	}
	const days = 24 * time.Hour
	add(time.Second, 2*time.Minute, time.Second)
	add(2*time.Minute, 10*time.Minute, 10*time.Second)
	add(10*time.Minute, 2*time.Hour, time.Minute)
	add(2*time.Hour, 12*time.Hour, 10*time.Minute)
	add(12*time.Hour, 7*days, time.Hour)
	add(7*days, 30*days, 6*time.Hour)
	add(30*days, 365*days, days)
	add(365*days, 20*365*days+1, 30*days)
	return all
}

// stepAbove is the index of the first step that catches a copy of this age; len(steps) if none
// does.
func stepAbove(age int64) int {
	return sort.Search(len(steps), func(i int) bool { return steps[i] > age })
}

func newLadder() *ladder {
	return &ladder{
		caught: make([]int64, len(steps)), within: make([]int64, len(steps)+1),
		owners: make([]int64, len(steps)),
	}
}

// begin starts with the copies of another ID.
func (l *ladder) begin() { l.used = 0 }

// add plays a copy; first is when the first record of its ID came. Copies of an ID come in order.
func (l *ladder) add(first, at int64) {
	ended := stepAbove(at - first) // the first record's claims of these steps have ended
	for ; l.used < ended; l.used++ {
		l.owners[l.used] = first
	}
	for i := range ended {
		if at-l.owners[i] < steps[i] {
			l.caught[i]++
		} else {
			l.owners[i] = at
		}
	}
	l.within[ended]++
}

// totals returns how many copies each step catches.
func (l *ladder) totals() []int64 {
	all := make([]int64, len(steps))
	var standing int64
	for i := range all {
		standing += l.within[i]
		all[i] = l.caught[i] + standing
	}
	return all
}

// ageBelow returns the first step below which the share of the ages lies; false if they go beyond
// all steps. Ages count from the first record of the ID.
func (l *ladder) ageBelow(share float64) (step int64, found bool) {
	var all, sum int64
	for _, n := range l.within {
		all += n
	}
	for i := range steps {
		if sum += l.within[i]; float64(sum) >= share*float64(all) {
			return steps[i], true
		}
	}
	return 0, false
}
