package steadyclock

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

var day0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// machine has a wall clock that is wrong by an error, and processes that know how long they run.
type machine struct {
	right time.Time
	wrong time.Duration
	file  string
}

func newMachine(t *testing.T) *machine {
	return &machine{right: day0, file: filepath.Join(t.TempDir(), "CLOCK")}
}

func (m *machine) options() Options {
	start := m.right
	return Options{
		Wall:    func() time.Time { return m.right.Add(m.wrong) },
		Elapsed: func() time.Duration { return m.right.Sub(start) },
	}
}

func (m *machine) open(t *testing.T) *Clock {
	t.Helper()
	c, err := Open(m.file, m.options())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// run lets time pass, in steps in which the clock is read as a sweep does.
func (m *machine) run(t *testing.T, c *Clock, long time.Duration) {
	t.Helper()
	for end := m.right.Add(long); m.right.Before(end); {
		m.right = m.right.Add(min(10*time.Minute, end.Sub(m.right)))
		c.Passed(MostPatience)
	}
	if c.file == "" {
		return
	}
	if err := c.Save(); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) want(t *testing.T, what string, got time.Time, want time.Duration) {
	t.Helper()
	if diff := got.Sub(m.right) - want; diff.Abs() > time.Second {
		t.Errorf("%s: %v from the right time, want %v", what, got.Sub(m.right), want)
	}
}

// trusted returns a clock that is in step.
func (m *machine) trusted(t *testing.T) *Clock {
	t.Helper()
	c := m.open(t)
	m.run(t, c, MostPatience+time.Hour)
	m.want(t, "in step", c.Passed(MostPatience), 0)
	return c
}

func TestAJumpIsFollowedOnceTheClockHasStoodByIt(t *testing.T) {
	for name, jump := range map[string]time.Duration{"ahead": 8 * 24 * time.Hour,
		"back": -8 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			c := m.trusted(t)
			m.wrong = jump
			m.run(t, c, 7*time.Hour)
			m.want(t, "an impatient reader", c.Passed(6*time.Hour), jump)
			// the wall clock has a veto
			m.want(t, "a patient one", c.Passed(8*time.Hour), min(0, jump))
			m.run(t, c, MostPatience)
			m.want(t, "after a day", c.Passed(MostPatience), jump)
			m.want(t, "and now", c.Now(), jump)
		})
	}
}

func TestAJumpThatIsTakenBackIsForgotten(t *testing.T) {
	m := newMachine(t)
	c := m.trusted(t)
	for range 5 { // never for a day
		m.wrong = 300 * 24 * time.Hour
		m.run(t, c, 20*time.Hour)
		m.wrong = 100 * 24 * time.Hour // back, but not as far
		m.run(t, c, 20*time.Hour)
		m.want(t, "ahead", c.Passed(MostPatience), 0)
		m.wrong = 0
		m.run(t, c, 10*time.Minute)
	}
	m.wrong = 0
	m.want(t, "right again", c.Passed(0), 0)
}

// A machine that begins with a wrong time has the right one soon, or not for hours; the process may
// start again meanwhile.
func TestAWrongTimeAtTheStartIsNotBelieved(t *testing.T) {
	for name, wrong := range map[string]time.Duration{"ahead": 3000 * 24 * time.Hour,
		"behind": -20_000 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.trusted(t)
			m.right, m.wrong = m.right.Add(time.Hour), wrong
			for range 3 {
				c := m.open(t)
				m.run(t, c, 3*time.Hour)
				if passed := c.Passed(MostPatience); passed.After(m.right) {
					t.Errorf("passed %v, right is %v", passed, m.right)
				}
				if now := c.Now(); now.Before(m.right.Add(-2 * time.Hour)) {
					t.Errorf("now is %v, though it was later before", now)
				}
			}
			m.wrong = 0
			c := m.open(t)
			m.run(t, c, MostPatience+time.Hour)
			m.want(t, "right again", c.Passed(MostPatience), 0)
		})
	}
}

func TestANewClockIsNotBelievedAtOnce(t *testing.T) {
	m := newMachine(t)
	m.wrong = 3000 * 24 * time.Hour
	c := m.open(t)
	m.run(t, c, time.Hour)
	if passed := c.Passed(2 * time.Hour); passed.After(day0) {
		t.Errorf("passed %v", passed)
	}
	m.wrong = 0
	m.run(t, c, time.Hour)
	m.want(t, "now", c.Now(), 0)
}

// Downtime is a jump; a process that runs for an hour a day must come to an end of what has ended,
// too.
func TestShortRunsAddUp(t *testing.T) {
	m := newMachine(t)
	for range 200 {
		c := m.open(t)
		m.run(t, c, time.Hour)
		m.right = m.right.Add(23 * time.Hour)
	}
	behind := m.right.Sub(m.open(t).Passed(MostPatience))
	if most := 2 * 25 * 24 * time.Hour; behind > most || behind < 0 {
		t.Errorf("it is %v behind, want at most twice the days that make a day of runs", behind)
	}
}

func TestARestartIsNoJump(t *testing.T) {
	m := newMachine(t)
	m.trusted(t)
	m.right = m.right.Add(4 * time.Minute)
	m.want(t, "after the restart", m.open(t).Passed(MostPatience), 0)
}

func TestADamagedFileIsAsNone(t *testing.T) {
	for _, data := range []string{"", "{", `{"version":2}`} {
		m := newMachine(t)
		if err := os.WriteFile(m.file, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		if passed := m.open(t).Passed(MostPatience); passed.After(time.UnixMilli(0)) {
			t.Errorf("%q: passed %v", data, passed)
		}
	}
}

func TestAClockWithoutAFileBeginsInStep(t *testing.T) {
	m := newMachine(t)
	c := New(m.options())
	m.right = m.right.Add(time.Hour)
	m.want(t, "in step", c.Passed(MostPatience), 0)
	m.wrong = 8 * 24 * time.Hour
	m.want(t, "after a jump", c.Passed(MostPatience), 0)
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"version":1,"steady":1000,"other":2000,"stood":5}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := parse(data)
		if err == nil {
			s.step(day0, time.Minute) // whatever it holds
		}
	})
}
