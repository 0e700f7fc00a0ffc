// Package outage logs errors that many parts of a process meet at once, such as all lanes whose
// broker is down: one line for each cause, with how many lanes and pipelines meet it, and one line
// when they have recovered.
package outage

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options describe what a Log writes.
type Options struct {
	Message   string // of the lines about errors
	Recovered string // of the line that all have recovered
	Fatal     bool   // the lines are errors, not warnings: nobody recovers
	Lanes     bool   // the lines name the lanes and topics of the reporters, or how many they are
	Logger    *slog.Logger
}

const (
	// settling is how long the first line about a cause waits for other reporters.
	settling = time.Second
	// growing is how long a cause that has more reporters is not logged again, and reminding how
	// long one without is not. The first is also how long those that have recovered wait for others
	// before they are logged.
	growing   = 30 * time.Second
	reminding = 10 * time.Minute
	// maxCauses bounds what is logged before all have recovered.
	maxCauses = 20
	// maxTopics is how many topics a line names.
	maxTopics = 3
)

// Log collects the errors of its reporters. It is safe for concurrent use, and has a timer only
// while one of them has not recovered.
type Log struct {
	o Options

	mu        sync.Mutex
	since     time.Time          // when the first of failed reported
	failed    map[*Reporter]bool // who reported since then, without those whose recovery was logged
	open      map[*Reporter]bool // those of failed that have not recovered
	recovered time.Time          // since when the last one of them has recovered
	noticed   time.Time          // when the log learned of it
	causes    []*cause
	timer     *time.Timer // nil while nothing is to be done
}

// cause is an error that reporters met. Errors of one Kind count as one.
type cause struct {
	kind      string
	logged    time.Time // zero: not yet
	counted   int       // its reporters in that line
	reporters map[*Reporter]bool
	told      error // the first, and after the line about it the latest
	fields    []any // of that
}

// New returns a log that nobody has reported to.
func New(o Options) *Log {
	return &Log{o: o, failed: make(map[*Reporter]bool), open: make(map[*Reporter]bool)}
}

// Reporter is what reports errors and recovers from them, such as a lane.
type Reporter struct {
	log     *Log
	topic   string
	lane    int
	healthy func() (since time.Time, healthy bool)
}

// Reporter returns a reporter, which the lines name by its topic and lane. A Log asks healthy every
// second whether a reporter that failed has recovered, and since when. Without it, only Recovered
// says so.
func (l *Log) Reporter(
	topic string, lane int, healthy func() (since time.Time, healthy bool),
) *Reporter {
	return &Reporter{log: l, topic: topic, lane: lane, healthy: healthy}
}

// Report notes that the reporter met an error. The fields are those of its line.
func (r *Reporter) Report(err error, fields ...any) {
	l := r.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) == 0 {
		l.since, l.causes = time.Now(), nil
		clear(l.failed)
	}
	l.open[r], l.failed[r] = true, true
	c := l.causeLocked(Kind(r.topic, err))
	if c == nil {
		return
	}
	c.reporters[r] = true
	if c.told == nil || !c.logged.IsZero() { // what settles with the first follows from it
		c.told, c.fields = err, fields
	}
	if !c.logged.IsZero() && time.Since(c.logged) >= c.quiet() {
		l.writeLocked(c)
	}
	l.scheduleLocked()
}

// Recovered notes that the reporter has recovered, whether or not it ever failed.
func (r *Reporter) Recovered() {
	l := r.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[r] {
		l.recoveredLocked(r, time.Now())
		l.endLocked(true)
		l.scheduleLocked()
	}
}

// Forget notes that nobody will learn whether the reporter recovers.
func (r *Reporter) Forget() {
	l := r.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[r] {
		delete(l.open, r)
		delete(l.failed, r)
		l.endLocked(false)
	}
}

func (c *cause) quiet() time.Duration {
	if len(c.reporters) > c.counted {
		return growing
	}
	return reminding
}

// causeLocked returns nil where there are too many already.
func (l *Log) causeLocked(kind string) *cause {
	at := slices.IndexFunc(l.causes, func(c *cause) bool { return c.kind == kind })
	switch {
	case at >= 0:
		return l.causes[at]
	case len(l.causes) == maxCauses:
		return nil
	}
	c := &cause{kind: kind, reporters: make(map[*Reporter]bool)}
	l.causes = append(l.causes, c)
	return c
}

func (l *Log) recoveredLocked(r *Reporter, since time.Time) {
	delete(l.open, r)
	l.noticed = time.Now()
	if since.After(l.recovered) {
		l.recovered = since
	}
}

// endLocked ends the outage when nobody is left in it.
func (l *Log) endLocked(recovered bool) {
	if len(l.open) > 0 {
		return
	}
	l.writeNewLocked()
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	if recovered {
		l.writeRecoveredLocked()
	}
}

// tick logs what has settled, and asks who is healthy.
func (l *Log) tick() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer == nil {
		return // the outage ended meanwhile
	}
	l.timer = nil
	l.writeNewLocked()
	for r := range l.open {
		if r.healthy == nil {
			continue
		}
		if since, healthy := r.healthy(); healthy {
			l.recoveredLocked(r, since)
		}
	}
	if len(l.open) == 0 {
		l.endLocked(true)
		return
	}
	// One that never recovers does not keep the log from saying that the others have.
	if len(l.failed) > len(l.open) && time.Since(l.noticed) >= growing {
		l.writeRecoveredLocked()
	}
	l.scheduleLocked()
}

// scheduleLocked has tick called if it would find something to do.
func (l *Log) scheduleLocked() {
	if l.timer != nil || len(l.open) == 0 {
		return
	}
	asks := func(r *Reporter) bool { return r.healthy != nil }
	unwritten := func(c *cause) bool { return c.logged.IsZero() }
	if len(l.failed) > len(l.open) || slices.ContainsFunc(l.causes, unwritten) ||
		containsKey(l.open, asks) {
		l.timer = time.AfterFunc(settling, l.tick)
	}
}

func containsKey(reporters map[*Reporter]bool, is func(*Reporter) bool) bool {
	for r := range reporters {
		if is(r) {
			return true
		}
	}
	return false
}

func (l *Log) writeNewLocked() {
	for _, c := range l.causes {
		if c.logged.IsZero() {
			l.writeLocked(c)
		}
	}
}

func (l *Log) writeLocked(c *cause) {
	level := slog.LevelWarn
	if l.o.Fatal {
		level = slog.LevelError
	}
	fields := append(l.named(c.reporters), "error", c.told)
	l.o.Logger.Log(context.Background(), level, l.o.Message, append(fields, c.fields...)...)
	c.logged, c.counted = time.Now(), len(c.reporters)
}

// writeRecoveredLocked logs those that have recovered and forgets them.
func (l *Log) writeRecoveredLocked() {
	gone := make(map[*Reporter]bool)
	for r := range l.failed {
		if !l.open[r] {
			gone[r] = true
			delete(l.failed, r)
			for _, c := range l.causes {
				delete(c.reporters, r)
				c.counted = min(c.counted, len(c.reporters))
			}
		}
	}
	fields := append(l.named(gone), "after",
		max(0, l.recovered.Sub(l.since)).Round(time.Millisecond))
	if len(l.open) > 0 {
		fields = append(fields, "still_failing", len(l.open))
	}
	l.o.Logger.Info(l.o.Recovered, fields...)
}

// named says which topic and lane they are of, or how many pipelines and lanes.
func (l *Log) named(reporters map[*Reporter]bool) []any {
	if !l.o.Lanes {
		return nil
	}
	var topics []string
	lane := 0
	for r := range reporters {
		if !slices.Contains(topics, r.topic) {
			topics = append(topics, r.topic)
		}
		lane = r.lane
	}
	slices.Sort(topics)
	var fields []any
	switch n := len(topics); {
	case n > maxTopics:
		fields = []any{"pipelines", n, "topics", strings.Join(topics[:maxTopics], ", ") + ", …"}
	case n > 1:
		fields = []any{"pipelines", n, "topics", strings.Join(topics, ", ")}
	case n == 1 && topics[0] != "":
		fields = []any{"topic", topics[0]}
	}
	if len(reporters) == 1 {
		return append(fields, "lane", lane)
	}
	return append(fields, "lanes", len(reporters))
}
