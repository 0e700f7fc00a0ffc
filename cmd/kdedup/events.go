package main

import (
	"context"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/kdedup/kdedup/server"
)

const (
	maxEvents     = 50
	maxEventBytes = 2000 // of each text
)

// eventLog is a log handler that keeps the last warnings and errors for the status page, and hands
// everything on to the next one.
type eventLog struct {
	next   slog.Handler
	kept   *keptEvents
	attrs  []slog.Attr // of the logger
	prefix string      // the open groups
}

// keptEvents is shared by all loggers that come from one.
type keptEvents struct {
	mu     sync.Mutex
	events []keptEvent // the latest last
}

type keptEvent struct {
	server.Event
	key string // equal events count as one
}

func newEventLog(next slog.Handler) *eventLog { return &eventLog{next: next, kept: &keptEvents{}} }

// Enabled also takes warnings that the next handler would not write.
func (l *eventLog) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn || l.next.Enabled(ctx, level)
}

// Handle keeps and hands on.
func (l *eventLog) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		l.kept.add(l.event(r))
	}
	if !l.next.Enabled(ctx, r.Level) {
		return nil
	}
	return l.next.Handle(ctx, r)
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

func (l *eventLog) event(r slog.Record) server.Event {
	e := server.Event{Level: r.Level.String(), Message: cut(r.Message), Count: 1, First: r.Time, Last: r.Time}
	var details []string
	note := func(name string, value slog.Value) {
		text := cut(textOf(value))
		switch name {
		case "error":
			e.Error = text
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
	return e
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

var digits = regexp.MustCompile(`[0-9]+`)

// add counts an event like an earlier one, which may differ in numbers: offsets, ports and times.
func (k *keptEvents) add(e server.Event) {
	key := digits.ReplaceAllString(strings.Join([]string{e.Level, e.Message, e.Topic, e.Error}, "\x00"), "0") + "\x00" + e.Lane
	k.mu.Lock()
	defer k.mu.Unlock()
	at := slices.IndexFunc(k.events, func(kept keptEvent) bool { return kept.key == key })
	if at >= 0 {
		e.Count, e.First = k.events[at].Count+1, k.events[at].First
		k.events = slices.Delete(k.events, at, at+1)
	} else if len(k.events) == maxEvents {
		k.events = slices.Delete(k.events, 0, 1)
	}
	k.events = append(k.events, keptEvent{e, key})
}

// latest lists what is kept, the latest first.
func (l *eventLog) latest() []server.Event {
	l.kept.mu.Lock()
	defer l.kept.mu.Unlock()
	events := make([]server.Event, 0, len(l.kept.events))
	for _, kept := range slices.Backward(l.kept.events) {
		events = append(events, kept.Event)
	}
	return events
}
