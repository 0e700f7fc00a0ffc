// Package steadyclock tells which time has surely come, for those who delete what has ended: what a
// wrong clock deletes is gone for good.
//
// A wall clock jumps: a machine starts with a wrong time until it has asked for the right one, a
// time server errs, somebody sets the clock. A steady clock goes on by itself, as time passes for
// the process. It follows a jump only once the wall clock has stood by it for some time, which the
// reader chooses:
//
//	in step ── the wall clock jumps ─► in dispute: the steady clock goes on, and so does a second one
//	   ▲                                  │           from where the wall clock went
//	   ├── it is back in step ────────────┤
//	   └── it stood by it for a day ──────┘ the second one is right
//
// The time while no process runs is such a jump, too. A clock that was never in step with the wall
// clock, as at a first start, is in dispute.
package steadyclock

import (
	"log/slog"
	"sync"
	"time"

	"github.com/kdedup/kdedup/internal/durable"
)

const (
	// MostPatience is how long a dispute lasts at most.
	MostPatience = 24 * time.Hour

	// tolerance is for clocks that are adjusted, machines that sleep, and restarts.
	tolerance = 5 * time.Minute
)

// Options of a clock. Only those of Open need a file.
type Options struct {
	Wall func() time.Time // nil: time.Now
	// since some moment in the process's life, whatever the wall clock does; nil: the system's
	Elapsed func() time.Duration
	Logger  *slog.Logger // hears of disputes; nil: nobody does
	Disk    durable.Disk // for the file; nil: the system's
}

func (o Options) withDefaults() Options {
	if o.Wall == nil {
		o.Wall = time.Now
	}
	if o.Elapsed == nil {
		start := time.Now()
		o.Elapsed = func() time.Duration { return time.Since(start) }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Disk == nil {
		o.Disk = durable.System{}
	}
	return o
}

// Clock is safe for concurrent use.
type Clock struct {
	o    Options
	file string // "": none

	mu    sync.Mutex
	at    time.Duration // elapsed when the clock was read last
	state state
}

// state is what outlives the process; the times are those of the last reading.
type state struct {
	steady   time.Time
	disputed bool
	other    time.Time     // where the wall clock went
	stood    time.Duration // for how long it has stood by that, while processes ran
}

// New returns a clock that begins in step with the wall clock, and ends with the process.
func New(o Options) *Clock {
	o = o.withDefaults()
	return &Clock{o: o, at: o.Elapsed(), state: state{steady: o.Wall()}}
}

// Passed is a time that has come: by the wall clock, and by the steady one, or the one that has
// disputed it for as long as the patience says.
func (c *Clock) Passed(patience time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall := c.readLocked()
	passed := c.state.steady
	if c.state.disputed && c.state.stood >= patience {
		passed = c.state.other
	}
	if wall.Before(passed) {
		return wall
	}
	return passed
}

// Now is the wall clock's time, or the steady one's when the wall clock is behind that.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall := c.readLocked()
	if wall.Before(c.state.steady) {
		return c.state.steady
	}
	return wall
}

// readLocked lets the time pass since the last reading, and returns the wall clock's.
func (c *Clock) readLocked() (wall time.Time) {
	wall = c.o.Wall().Round(0) // without the monotonic reading: a difference must see jumps
	elapsed := c.o.Elapsed()
	if c.state.step(wall, elapsed-c.at) {
		c.o.Logger.Info("the clock jumped, or no process ran; what has ended by the new time "+
			"only is not deleted before it is certain",
			"from", c.state.steady, "to", wall)
	}
	c.at = elapsed
	return wall
}

// step tells whether a dispute begins.
func (s *state) step(wall time.Time, passed time.Duration) (begins bool) {
	s.steady = s.steady.Add(passed)
	if s.disputed {
		s.other, s.stood = s.other.Add(passed), s.stood+passed
	}
	switch jump := wall.Sub(s.steady); {
	case jump.Abs() <= tolerance:
		*s = state{steady: wall}
	case !s.disputed, wall.Before(s.other.Add(-tolerance)),
		s.other.After(s.steady) != wall.After(s.steady):
		// What stood before does not count: the wall clock has taken it back.
		begins = !s.disputed
		*s = state{steady: s.steady, disputed: true, other: wall}
	case s.stood >= MostPatience:
		*s = state{steady: s.other}
	}
	return begins
}
