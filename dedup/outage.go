package dedup

import (
	"context"
	"log/slog"
	"time"

	"github.com/kdedup/kdedup/internal/outage"
)

// Outages logs that dedupers wait for a server: one line that they wait, and one that they go on,
// however many of them share it.
type Outages struct{ store, resolver *outage.Log }

// NewOutages writes to the log. Its lines name the topics and lanes of the dedupers.
func NewOutages(log *slog.Logger) *Outages { return newOutages(log, true) }

func newOutages(log *slog.Logger, lanes bool) *Outages {
	return &Outages{
		store: outage.New(outage.Options{Message: "claims undecided, claiming again",
			Recovered: "claims decided again", Lanes: lanes, Logger: log}),
		resolver: outage.New(outage.Options{Message: "message IDs not known yet, asking again",
			Recovered: "message IDs known again", Lanes: lanes, Logger: log}),
	}
}

// waiting is the outage of a server that a deduper waits for.
type waiting struct {
	reporter *outage.Reporter
	open     string // for what it waits, in the log

	since time.Time // when the present outage was first seen; zero while the server answers
	seen  time.Time // when it was last seen
}

func (w *waiting) note(open int, err error) {
	w.seen = time.Now()
	if w.since.IsZero() {
		w.since = w.seen
	}
	w.reporter.Report(err, w.open, open)
}

func (w *waiting) ended() {
	if !w.since.IsZero() {
		w.reporter.Recovered()
	}
	w.since = time.Time{}
}

// interrupted ends an outage together with the wait for its end: nobody knows what the server does
// until it is asked again, and one failure then must not be taken for an outage since this one
// began.
func (w *waiting) interrupted(ctx context.Context) error {
	w.forget()
	return context.Cause(ctx)
}

// leaveOld does the same where records passed unclaimed, and none came for a while.
func (w *waiting) leaveOld(r Retry) {
	if time.Since(w.seen) > r.Max {
		w.forget()
	}
}

func (w *waiting) forget() {
	if !w.since.IsZero() {
		w.reporter.Forget()
	}
	w.since = time.Time{}
}

func (w *waiting) outlasts(r Retry) bool {
	return r.GiveUpAfter > 0 && time.Since(w.since) >= r.GiveUpAfter
}
