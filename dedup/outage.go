package dedup

import (
	"context"
	"log/slog"
	"time"
)

// outage is that of a server that a deduper waits for.
type outage struct {
	begins, goesOn, over string // what the log says
	open                 string // of what, in the log

	since time.Time // when the present outage was first seen; zero while the server answers
	seen  time.Time // when it was last seen
}

var (
	storeOutage = outage{begins: "claims undecided, claiming again",
		goesOn: "claims still undecided", over: "claims decided again", open: "claims"}
	resolverOutage = outage{begins: "message IDs not known yet, asking again",
		goesOn: "message IDs still not known", over: "message IDs known again", open: "records"}
)

func (o *outage) note(log *slog.Logger, open int, err error) {
	o.seen = time.Now()
	if !o.since.IsZero() {
		log.Debug(o.goesOn, o.open, open, "error", err)
		return
	}
	o.since = o.seen
	log.Warn(o.begins, o.open, open, "error", err)
}

func (o *outage) ended(log *slog.Logger) {
	if o.since.IsZero() {
		return
	}
	log.Info(o.over, "after", time.Since(o.since).Round(time.Millisecond))
	o.since = time.Time{}
}

// interrupted ends an outage together with the wait for its end: nobody knows what the server does
// until it is asked again, and one failure then must not be taken for an outage since this one
// began.
func (o *outage) interrupted(ctx context.Context) error {
	o.since = time.Time{}
	return context.Cause(ctx)
}

// leaveOld does the same where records passed unclaimed, and none came for a while.
func (o *outage) leaveOld(r Retry) {
	if time.Since(o.seen) > r.Max {
		o.since = time.Time{}
	}
}

func (o *outage) outlasts(r Retry) bool {
	return r.GiveUpAfter > 0 && time.Since(o.since) >= r.GiveUpAfter
}
