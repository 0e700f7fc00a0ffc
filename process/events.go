package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kdedup/kdedup/internal/outage"
	"github.com/kdedup/kdedup/process/server"
)

const (
	maxEvents     = 50
	maxEventBytes = 2000 // of each text

	// repeatsEvery is how often a warning or an error is written that comes again and again.
	repeatsEvery = time.Minute

	// maxPlaces is how many topics and lanes with the same warning have an event and lines of their
	// own. The rest of them share one, so that an outage under many pipelines neither fills the log
	// nor pushes older warnings off the page.
	maxPlaces = 4
	// maxNamed is how many topics of the rest are named.
	maxNamed = 3
)

// eventLog is a log handler that keeps the last warnings and errors for the status page, and hands
// everything on to the next one, but for equal warnings and errors within a minute: of those it
// hands on the first and, when the minute is over, the last one with their number.
type eventLog struct {
	next   slog.Handler
	kept   *keptEvents
	attrs  []slog.Attr // of the logger
	prefix string      // the open groups
	every  bool        // hand on every line
}

// keptEvents is shared by all loggers that come from one.
type keptEvents struct {
	mu     sync.Mutex
	events []keptEvent // the latest last
}

type keptEvent struct {
	server.Event
	key     string    // equal events count as one
	cause   string    // equal for those of all topics and lanes
	topics  []string  // of the rest, see maxPlaces; sorted
	written time.Time // the last line about it
	held    int       // lines since then that were not written
	last    line      // of those
}

// line is a record and who writes it, with the attributes of its logger.
type line struct {
	to     slog.Handler
	record slog.Record
}

func newEventLog(next slog.Handler) *eventLog { return &eventLog{next: next, kept: &keptEvents{}} }

// Enabled also takes warnings that the next handler would not write.
func (l *eventLog) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn || l.next.Enabled(ctx, level)
}

// everyLine is for what somebody asked for and waits for.
func (l *eventLog) everyLine() *eventLog {
	inner := *l
	inner.every = true
	return &inner
}

// Handle keeps and hands on.
func (l *eventLog) Handle(ctx context.Context, r slog.Record) error {
	now := time.Now()
	write := l.kept.due(now)
	told := r.Level < slog.LevelWarn
	if !told {
		e, err := l.event(r)
		told = l.kept.add(e, outage.Kind(e.Topic, err), line{l.next, r}, now, l.every)
	}
	if told {
		write = append(write, line{l.next, r})
	}
	return writeLines(ctx, write)
}

// flush writes what was held back.
func (l *eventLog) flush() error {
	return writeLines(context.Background(), l.kept.due(time.Now().Add(repeatsEvery)))
}

func writeLines(ctx context.Context, lines []line) error {
	var errs []error
	for _, w := range lines {
		if w.to.Enabled(ctx, w.record.Level) {
			errs = append(errs, w.to.Handle(ctx, w.record))
		}
	}
	return errors.Join(errs...)
}

// WithAttrs implements slog.Handler.
func (l *eventLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	inner := *l
	inner.next, inner.attrs = l.next.WithAttrs(attrs), slices.Clone(l.attrs)
	for _, a := range attrs {
		inner.attrs = append(inner.attrs, slog.Attr{Key: l.prefix + a.Key, Value: a.Value})
	}
	return &inner
}

// WithGroup implements slog.Handler.
func (l *eventLog) WithGroup(name string) slog.Handler {
	inner := *l
	inner.next, inner.prefix = l.next.WithGroup(name), l.prefix+name+"."
	return &inner
}

// event also returns the error of the line.
func (l *eventLog) event(r slog.Record) (e server.Event, failure error) {
	e = server.Event{Level: r.Level.String(), Message: cut(r.Message), Count: 1, First: r.Time,
		Last: r.Time}
	var details []string
	note := func(name string, value slog.Value) {
		text := cut(textOf(value))
		switch name {
		case "error":
			e.Error = text
			if failure, _ = value.Resolve().Any().(error); failure == nil {
				failure = errors.New(text)
			}
		case "hint":
			e.Hint = text
		case "topic":
			e.Topic = text
		case "lane":
			e.Lane = text
		default:
			details = append(details, name+"="+text)
		}
	}
	for _, a := range l.attrs {
		note(a.Key, a.Value)
	}
	r.Attrs(func(a slog.Attr) bool {
		note(l.prefix+a.Key, a.Value)
		return true
	})
	e.Details = cut(strings.Join(details, " "))
	return e, failure
}

// textOf avoids %+v, by which some errors print where they were made.
func textOf(v slog.Value) string {
	v = v.Resolve()
	if err, ok := v.Any().(error); ok {
		return err.Error()
	}
	return v.String()
}

func cut(text string) string {
	if len(text) <= maxEventBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxEventBytes], "") + "…"
}

// add counts an event like an earlier one of the same topic and lane, whose message and error may
// have other numbers: offsets, ports and times. It reports whether the line is to be written now;
// otherwise it is held back.
func (k *keptEvents) add(e server.Event, kind string, l line, now time.Time, every bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	kept := keptEvent{Event: e, written: now,
		cause: strings.Join([]string{e.Level, outage.Nameless(e.Topic, e.Message), kind}, "\x00")}
	kept.key = strings.Join([]string{kept.cause, e.Topic, e.Lane}, "\x00")
	at := k.find(kept.key)
	if at < 0 && e.Topic != "" && k.places(kept.cause) >= maxPlaces {
		kept.key = kept.cause + "\x00the rest"
		if at = k.find(kept.key); at >= 0 {
			kept.topics = k.events[at].topics
		}
		kept.gather(e.Topic)
	}
	if at >= 0 {
		earlier := k.events[at]
		kept.Count, kept.First = earlier.Count+1, earlier.First
		if !every && now.Sub(earlier.written) < repeatsEvery {
			kept.written, kept.held, kept.last = earlier.written, earlier.held+1, l
		}
		k.events = slices.Delete(k.events, at, at+1)
	} else if len(k.events) == maxEvents {
		k.events = slices.Delete(k.events, 0, 1)
	}
	k.events = append(k.events, kept)
	return kept.held == 0
}

func (k *keptEvents) find(key string) int {
	return slices.IndexFunc(k.events, func(e keptEvent) bool { return e.key == key })
}

// places is how many topics and lanes have an event of their own about a cause.
func (k *keptEvents) places(cause string) (n int) {
	for _, e := range k.events {
		if e.cause == cause && e.topics == nil {
			n++
		}
	}
	return n
}

// gather adds a topic to the rest.
func (e *keptEvent) gather(topic string) {
	if at, known := slices.BinarySearch(e.topics, topic); !known {
		e.topics = slices.Insert(slices.Clone(e.topics), at, topic)
	}
	e.Lane = ""
	e.Topic = strings.Join(e.topics[:min(len(e.topics), maxNamed)], ", ")
	if n := len(e.topics) - maxNamed; n > 0 {
		e.Topic += fmt.Sprintf(" and %d more", n)
	}
}

// due returns the lines that were held back for long enough, with their number.
func (k *keptEvents) due(now time.Time) (lines []line) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range k.events {
		e := &k.events[i]
		if e.held == 0 || now.Sub(e.written) < repeatsEvery {
			continue
		}
		l := line{e.last.to, e.last.record.Clone()}
		l.record.AddAttrs(slog.Int("repeated", e.held))
		if len(e.topics) > 1 {
			l.record.AddAttrs(slog.String("also_of", e.Topic))
		}
		lines = append(lines, l)
		e.written, e.held, e.last = now, 0, line{}
	}
	return lines
}

// latest lists what is kept, the latest first. What several lanes of a topic meet is one event.
func (l *eventLog) latest() []server.Event {
	l.kept.mu.Lock()
	defer l.kept.mu.Unlock()
	events := make([]server.Event, 0, len(l.kept.events))
	at := make(map[string]int)
	for _, kept := range slices.Backward(l.kept.events) {
		place := kept.cause + "\x00" + kept.Topic
		if i, known := at[place]; known && kept.Lane != "" && events[i].Lane != "" {
			events[i] = together(events[i], kept.Event)
			continue
		}
		at[place] = len(events)
		events = append(events, kept.Event)
	}
	return events
}

// together is the latest of two events, with the lanes, the number and the details of both: numbers
// in them are of one lane.
func together(latest, earlier server.Event) server.Event {
	if latest.Details+earlier.Details != "" {
		if !strings.Contains(latest.Lane, ",") {
			latest.Details = "lane " + latest.Lane + ": " + latest.Details
		}
		latest.Details = cut(latest.Details + "; lane " + earlier.Lane + ": " + earlier.Details)
	}
	lanes := append(strings.Split(latest.Lane, ", "), earlier.Lane)
	slices.SortFunc(lanes, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) // numbers
	})
	latest.Lane = strings.Join(lanes, ", ")
	latest.Count += earlier.Count
	if earlier.First.Before(latest.First) {
		latest.First = earlier.First
	}
	return latest
}
