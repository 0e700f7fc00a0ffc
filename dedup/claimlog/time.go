package claimlog

import (
	"errors"
	"slices"
	"time"
)

// skew is by how much the log's clock was ahead of the clock of the process that wrote a block, in
// milliseconds, where that is more than lateness explains; and the place of the first such block.
// Zero: the last block came in time.
type skew struct {
	By int64 `json:"by"`
	At int64 `json:"at"`
}

// moment is what a shard makes of the time of a block.
type moment struct {
	now int64
	own int64 // the time of the block itself; 0: it has none
	// by how much longer claims of the block hold, as the time may be as much later
	grace int64
	skew  skew
	// the block came much later than it was written, and nothing that its writer knew explains
	// that: it claims nothing, and moves no time
	unexplained bool
}

// momentOf is the time by which a block is judged. A function of the log decides that, and not the
// clock of a reader: the log's clock (in Kafka the broker's, which moves from leader to leader),
// unless the clock of the block's writer contradicts it.
//
//   - The log's is far ahead of the writer's: the block came late, or a clock is wrong, and nobody
//     knows which. So it claims nothing, and its writer tries again. A block whose writer knew of
//     that one, and which shows the same, came in time: the clock is wrong, and the difference is
//     taken away.
//   - The log's is far behind the writer's: one of the two is wrong, and claims hold for longer by
//     the difference, a day at most. So they do not end early for a broker whose clock is behind.
//
// Time may go back: where both clocks were ahead, as on one machine, they end claims for as long as
// they are. Nothing of the time before a block stays but what is in the index. So processes agree
// whose log began at different places.
//
// Blocks of firstVersion do not tell when they were written: the latest time of all counts.
func (s *shardState) momentOf(e Entry, b *block, late int64) moment {
	if b.version == firstVersion {
		return moment{now: max(e.Time, s.Time), own: e.Time}
	}
	m := moment{now: e.Time}
	switch by := e.Time - b.written; {
	case by < -late:
		m.grace = min(-by, mostGrace.Milliseconds())
	case by > late:
		known := s.Skew.By != 0 && by-s.Skew.By <= late && s.Skew.By-by <= late
		m.skew = skew{By: by, At: e.At}
		if known {
			m.skew.At = s.Skew.At
		}
		if m.unexplained = !known || b.seen.Next <= s.Skew.At; m.unexplained {
			m.now = s.Time
		} else {
			m.now -= s.Skew.By
		}
	}
	if !m.unexplained {
		m.own = m.now
	}
	return m
}

// rise tells between which blocks of a shard its time rose by more than lateness. The time may have
// gone back before, so that it hides this from who compares the time of a place with that of now.
type rise struct {
	// From this place on no later block is later by more than lateness.
	Fresh int64 `json:"fresh"`
	// The last places with a time, by steps of time, without those before which a later place has
	// no later time: both rise.
	Lows []low `json:"lows,omitempty"`
}

type low struct {
	At   int64 `json:"at"`   // the place of the last block of the step
	From int64 `json:"from"` // where the step begins
}

// steps is into how many the lateness is divided: by so much less a block may be late here.
const steps = 32

// add takes note of a block that has a time.
func (r *rise) add(place, time, late int64) {
	step := max(1, late/steps)
	from, n := time-time%step, len(r.Lows)
	for n > 0 && r.Lows[n-1].From >= from {
		n--
	}
	r.Lows = append(r.Lows[:n], low{place, from})
	stale := 0
	for time-r.Lows[stale].From > late {
		r.Fresh = r.Lows[stale].At + 1
		stale++
	}
	r.Lows = slices.Delete(r.Lows, 0, stale)
}

// exceeds reports whether the time rose by more than lateness from a block at a place, or behind
// it, to a later one, or will by a block of a time.
func (r *rise) exceeds(place, time, late int64) bool {
	if place < r.Fresh {
		return true
	}
	for _, l := range r.Lows {
		if l.At >= place {
			return time-l.From > late
		}
	}
	return false
}

const mostGrace = 24 * time.Hour

// clock is what a process knows of the time of the log.
type clock struct {
	log int64     // of a block that was just written when it was read
	at  time.Time // when that was
}

// clockHolds is for how long the log's clock is believed to go on as it was read.
const clockHolds = time.Minute

// now is the time of the log, if it is known.
func (c *clock) now() (now int64, known bool) {
	since := time.Since(c.at)
	if c.log == 0 || since > clockHolds {
		return 0, false
	}
	return c.log + since.Milliseconds(), true
}

// tellClocks says that a clock is, or was, wrong, once a minute.
func (s *space) tellClocks(e Entry, void error, before, now int64) {
	skewed, back := errors.Is(void, errSkew), before-now > lateness.Milliseconds()
	if !skewed && !back {
		return
	}
	s.metrics.skewed.Inc()
	if time.Since(s.skewed) < time.Minute {
		return
	}
	s.skewed = time.Now()
	if back {
		s.log.Warn("the time of the claim log was ahead, and goes back: clocks were wrong",
			"group", s.group, "shard", e.Shard, "by", milliseconds(before-now))
		return
	}
	s.log.Warn("a block of claims is much younger than it was when it was written, and counts for "+
		"nothing: it came late, or a clock is wrong", "group", s.group, "shard", e.Shard,
		"place", e.At, "error", void)
}
