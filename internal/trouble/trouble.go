// Package trouble tells of what many meet at once, such as the lanes of a pipeline whose broker is
// down: in a line for each cause, with how many have met it, and in one line when all are over it.
package trouble

import (
	"context"
	"log/slog"
	"regexp"
	"slices"
	"sync"
	"time"
)

// Options describe one kind of trouble.
type Options struct {
	Begins string // the message of the warnings
	Fatal  bool   // they are errors: nobody gets over it
	Over   string // the message when all are over it
	Who    string // what those are who meet it, such as lane; empty: the logger tells it
	// Well tells since when somebody is over it, if he is: it is asked every second. Nil: only Over
	// tells.
	Well   func(who int) (since time.Time, well bool)
	Logger *slog.Logger
}

const (
	// settling is how long the first line about a cause waits for others who meet it.
	settling = time.Second
	// growing is how long a cause that more have met is not told again, and reminding how long one
	// is not that lasts.
	growing   = 30 * time.Second
	reminding = 10 * time.Minute
	// maxCauses bounds what is told before all are over it.
	maxCauses = 20
)

// Desk hears of a kind of trouble. It is safe for concurrent use, and has a timer only while
// somebody is in trouble.
type Desk struct {
	o Options

	mu     sync.Mutex
	since  time.Time
	open   map[int]bool // who are not over it
	met    map[int]bool // all who met it since then
	last   time.Time    // when the last one of them was over it
	causes []*cause
	timer  *time.Timer // nil while nothing is to be done
}

// cause is an error that somebody met. Errors that differ only in numbers count as one.
type cause struct {
	key    string
	told   time.Time // zero: not yet
	said   int       // how many had met it then
	who    map[int]bool
	latest error
	more   []any // fields of the latest
}

// New returns a desk that has not heard of anything.
func New(o Options) *Desk { return &Desk{o: o} }

// numbers also finds those of sixteen digits, of which some are letters, as in random names.
var numbers = regexp.MustCompile(`[0-9a-f]*[0-9][0-9a-f]*`)

// Kind is equal for errors that differ only in numbers, such as ports.
func Kind(err error) string {
	if err == nil {
		return ""
	}
	return Numberless(err.Error())
}

// Numberless is equal for texts that differ only in numbers.
func Numberless(text string) string { return numbers.ReplaceAllString(text, "0") }

// Met notes that somebody met an error. The fields are those of its line.
func (d *Desk) Met(who int, err error, fields ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.open) == 0 {
		d.since, d.causes = time.Now(), nil
		d.open, d.met = make(map[int]bool), make(map[int]bool)
	}
	d.open[who], d.met[who] = true, true
	c := d.causeLocked(err)
	if c == nil {
		return
	}
	c.who[who], c.latest, c.more = true, err, fields
	if !c.told.IsZero() && time.Since(c.told) >= c.quiet() {
		d.tellLocked(c)
	}
	d.scheduleLocked()
}

func (c *cause) quiet() time.Duration {
	if len(c.who) > c.said {
		return growing
	}
	return reminding
}

// causeLocked is nil where there are too many already.
func (d *Desk) causeLocked(err error) *cause {
	key := Kind(err)
	at := slices.IndexFunc(d.causes, func(c *cause) bool { return c.key == key })
	switch {
	case at >= 0:
		return d.causes[at]
	case len(d.causes) == maxCauses:
		return nil
	}
	c := &cause{key: key, who: make(map[int]bool)}
	d.causes = append(d.causes, c)
	return c
}

// Over notes that somebody is over it, whom it may never have met.
func (d *Desk) Over(who int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open[who] {
		d.overLocked(who, time.Now())
		d.endLocked(true)
	}
}

// Gone notes that nobody will hear whether somebody is over it.
func (d *Desk) Gone(who int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open[who] {
		delete(d.open, who)
		delete(d.met, who)
		d.endLocked(false)
	}
}

func (d *Desk) overLocked(who int, since time.Time) {
	delete(d.open, who)
	if since.After(d.last) {
		d.last = since
	}
}

// endLocked ends the trouble when all have left it.
func (d *Desk) endLocked(over bool) {
	if len(d.open) > 0 {
		return
	}
	d.tellNewLocked()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if over {
		d.o.Logger.Info(d.o.Over, append(d.those(d.met),
			"after", max(0, d.last.Sub(d.since)).Round(time.Millisecond))...)
	}
}

// tick tells what has settled, and asks who is well.
func (d *Desk) tick() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer == nil {
		return // it ended meanwhile
	}
	d.timer = nil
	d.tellNewLocked()
	for who := range d.open {
		if d.o.Well == nil {
			break
		}
		if since, well := d.o.Well(who); well {
			d.overLocked(who, since)
		}
	}
	if len(d.open) == 0 {
		d.endLocked(true)
		return
	}
	d.scheduleLocked()
}

// scheduleLocked has tick called if it would find something to do.
func (d *Desk) scheduleLocked() {
	if d.timer != nil {
		return
	}
	if d.o.Well != nil || slices.ContainsFunc(d.causes, func(c *cause) bool {
		return c.told.IsZero()
	}) {
		d.timer = time.AfterFunc(settling, d.tick)
	}
}

func (d *Desk) tellNewLocked() {
	for _, c := range d.causes {
		if c.told.IsZero() {
			d.tellLocked(c)
		}
	}
}

func (d *Desk) tellLocked(c *cause) {
	level := slog.LevelWarn
	if d.o.Fatal {
		level = slog.LevelError
	}
	fields := append(d.those(c.who), "error", c.latest)
	d.o.Logger.Log(context.Background(), level, d.o.Begins, append(fields, c.more...)...)
	c.told, c.said = time.Now(), len(c.who)
}

// those is who it is, or how many they are.
func (d *Desk) those(who map[int]bool) []any {
	if d.o.Who == "" {
		return nil
	}
	if len(who) == 1 {
		for one := range who {
			return []any{d.o.Who, one}
		}
	}
	return []any{d.o.Who + "s", len(who)}
}
