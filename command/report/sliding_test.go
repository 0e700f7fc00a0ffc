package report

import (
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

// A record each 40 minutes, with a ttl of an hour: the third is new, unless the second has renewed
// the claim.
func TestASlidingWindowCatchesWhatFollowsClosely(t *testing.T) {
	for name, c := range map[string]struct {
		sliding   bool
		copies    int64
		forAnHour int64
	}{
		"from the first": {false, 2, 2},
		"from the last":  {true, 4, 4},
	} {
		t.Run(name, func(t *testing.T) {
			collect := &collector{partitions: map[int32]*tally{0: {}}}
			a := newAnalysis(time.Hour, c.sliding, collect)
			a.beginGroup([]byte("id"), occurrence{})
			for n := range int64(4) {
				at := (n + 1) * 40 * time.Minute.Milliseconds()
				a.verdicts[a.verdict(occurrence{at: at})]++
				a.climb(occurrence{at: at})
				a.group.last = at
			}
			if got := a.verdicts[dedup.VerdictDuplicate]; got != c.copies {
				t.Errorf("%d duplicates, want %d", got, c.copies)
			}
			hour := stepAbove(time.Hour.Milliseconds() - 1)
			if got := a.ladder.totals()[hour]; got != c.forAnHour {
				t.Errorf("a ttl of an hour would catch %d, want %d", got, c.forAnHour)
			}
			if got := a.verdict(occurrence{at: a.group.last + time.Hour.Milliseconds()}); got !=
				dedup.VerdictFirst {
				t.Errorf("%v an hour after the last copy", got)
			}
		})
	}
}
