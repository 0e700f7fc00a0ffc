package dedup

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/kdedup/kdedup/internal/pause"
)

// Retry says how a deduper insists on an answer.
type Retry struct {
	// First and Max bound the pause between two rounds of claims; it doubles from one to the
	// other and is jittered by half, so that lanes and processes do not return in step.
	First, Max time.Duration
	// GiveUpAfter is how long an outage may last before records pass unclaimed. Zero means never:
	// the lane waits until the store is back. An outage is one as long as claims fail one after the
	// other: after a wait that was ended, or longer than Max, the next failure begins another.
	GiveUpAfter time.Duration
}

// DefaultRetry waits for the store however long it takes.
var DefaultRetry = Retry{First: 20 * time.Millisecond, Max: 5 * time.Second}

// pause is the jittered wait before round n = 1, 2, ….
func (r Retry) pause(n int) time.Duration {
	pause := r.First
	for range n - 1 {
		if pause *= 2; pause >= r.Max {
			pause = r.Max
			break
		}
	}
	return pause/2 + rand.N(pause/2+1)
}

// insist claims until every answer is decided. Only what is undecided is claimed again, so the
// requests per claim stay bounded however large the batch is that a failing node spoils.
func (d *Deduper) insist(ctx context.Context, claims []Claim) ([]Answer, error) {
	if len(claims) == 0 {
		return nil, context.Cause(ctx) // nil while ctx lives
	}
	d.outage.leaveOld(d.retry)
	answers, err := d.store.Claim(ctx, d.scope, claims)
	open := undecided(answers, nil)
	defer d.observer.Ended() // also if the batch is given up: then nobody waits any more
	for round := 1; len(open) > 0; round++ {
		if ctx.Err() != nil {
			return nil, d.outage.interrupted(ctx)
		}
		d.observer.Undecided(len(open))
		d.outage.note(len(open), err)
		if d.outage.outlasts(d.retry) {
			return answers, nil
		}
		if !pause.For(ctx, d.retry.pause(round)) {
			return nil, d.outage.interrupted(ctx)
		}
		err = d.claimAgain(ctx, claims, answers, open)
		open = undecided(answers, open)
	}
	d.outage.ended()
	return answers, nil
}

// claimAgain repeats the open claims and puts what is decided into answers.
func (d *Deduper) claimAgain(
	ctx context.Context, claims []Claim, answers []Answer, open []int,
) error {
	d.observer.Again()
	again := make([]Claim, len(open))
	for i, at := range open {
		again[i] = claims[at]
	}
	got, err := d.store.Claim(ctx, d.scope, again)
	for i, at := range open {
		answers[at] = got[i]
	}
	return err
}

// undecided lists the answers that are still open, into the given memory.
func undecided(answers []Answer, into []int) []int {
	into = into[:0]
	for i := range answers {
		if answers[i].Outcome == Undecided {
			into = append(into, i)
		}
	}
	return into
}
