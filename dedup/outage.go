package dedup

import (
	"context"
	"log/slog"
	"time"

	"github.com/kdedup/kdedup/internal/trouble"
)

// Outages tells of servers for which dedupers wait: once that they wait, and once that they go on,
// however many share it.
type Outages struct{ store, resolver *trouble.Desk }

// NewOutages writes to the log. Who says what shares it, such as lane; empty: the log has it.
func NewOutages(log *slog.Logger, who string) *Outages {
	return &Outages{
		store: trouble.New(trouble.Options{Begins: "claims undecided, claiming again",
			Over: "claims decided again", Who: who, Logger: log}),
		resolver: trouble.New(trouble.Options{Begins: "message IDs not known yet, asking again",
			Over: "message IDs known again", Who: who, Logger: log}),
	}
}

// outage is that of a server that a deduper waits for.
type outage struct {
	desk *trouble.Desk
	who  int    // is it that waits
	open string // for what, in the log

	since time.Time // when the present outage was first seen; zero while the server answers
	seen  time.Time // when it was last seen
}

func (o *outage) note(open int, err error) {
	o.seen = time.Now()
	if o.since.IsZero() {
		o.since = o.seen
	}
	o.desk.Met(o.who, err, o.open, open)
}

func (o *outage) ended() {
	if !o.since.IsZero() {
		o.desk.Over(o.who)
	}
	o.since = time.Time{}
}

// interrupted ends an outage together with the wait for its end: nobody knows what the server does
// until it is asked again, and one failure then must not be taken for an outage since this one
// began.
func (o *outage) interrupted(ctx context.Context) error {
	o.forget()
	return context.Cause(ctx)
}

// leaveOld does the same where records passed unclaimed, and none came for a while.
func (o *outage) leaveOld(r Retry) {
	if time.Since(o.seen) > r.Max {
		o.forget()
	}
}

func (o *outage) forget() {
	if !o.since.IsZero() {
		o.desk.Gone(o.who)
	}
	o.since = time.Time{}
}

func (o *outage) outlasts(r Retry) bool {
	return r.GiveUpAfter > 0 && time.Since(o.since) >= r.GiveUpAfter
}
