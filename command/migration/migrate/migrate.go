package migrate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/pause"
)

// Place is a scope in a store. The scope has the settings with which it is registered there.
type Place struct {
	Store dedup.Mover
	Scope dedup.Scope
}

// Options say what is copied.
type Options struct {
	From, To Place
	Progress func(claims int64) // those that were read so far; may be nil
	Now      func() time.Time   // nil: time.Now
	Pause    time.Duration      // before what failed is repeated; 0: a second
	Attempts int                // that may fail one after the other; 0: 30
}

func (o Options) withDefaults() Options {
	if o.Progress == nil {
		o.Progress = func(int64) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Pause == 0 {
		o.Pause = time.Second
	}
	if o.Attempts == 0 {
		o.Attempts = 30
	}
	return o
}

// Difference is a claim that the two stores have in different ways.
type Difference struct {
	Old, New *dedup.Standing // nil: there is none
}

// mostExamples is how many differences are kept of all.
const mostExamples = 5

// Differences counts them.
type Differences struct {
	Count    int64
	Examples []Difference
}

func (d *Differences) add(old, new *dedup.Standing) {
	if d.Count++; len(d.Examples) < mostExamples {
		d.Examples = append(d.Examples, Difference{clone(old), clone(new)})
	}
}

func clone(c *dedup.Standing) *dedup.Standing {
	if c == nil {
		return nil
	}
	copied := *c
	return &copied
}

// Copied is what became of the claims that were read. One that was read twice counts twice.
type Copied struct {
	Copied int64 // by this run; where answers were lost, perhaps by an earlier one
	There  int64 // by an earlier one
	Ended  int64 // before they could be copied
	Differ Differences
}

// Copy makes the claims that stand in one place in the other one, too. The counts are those up to
// an error; running again goes on.
func Copy(ctx context.Context, o Options) (c Copied, err error) {
	o = o.withDefaults()
	read := int64(0)
	err = o.From.Store.Export(ctx, o.From.Scope, func(page []dedup.Standing) error {
		if err := c.page(ctx, o, page); err != nil {
			return err
		}
		read += int64(len(page))
		o.Progress(read)
		return nil
	})
	if err != nil {
		return c, fmt.Errorf("copy claims: %w", err)
	}
	return c, nil
}

// page copies some claims, and repeats what stays undecided.
func (c *Copied) page(ctx context.Context, o Options, page []dedup.Standing) error {
	open := slices.Clone(page)
	repeated := false
	for failed := 0; ; {
		open = c.living(open, o.Now())
		if len(open) == 0 {
			return nil
		}
		answers, err := o.To.Store.Import(ctx, o.To.Scope, open)
		left := c.decided(open, answers, repeated)
		if err == nil {
			c.Ended += int64(len(left)) // the contract has no other reason
			return nil
		}
		if len(left) < len(open) {
			failed = 0
		}
		open, repeated = left, true
		if failed++; failed > o.Attempts {
			return err
		}
		if !pause.For(ctx, o.Pause) {
			return context.Cause(ctx)
		}
	}
}

// living drops what has ended.
func (c *Copied) living(open []dedup.Standing, now time.Time) []dedup.Standing {
	return slices.DeleteFunc(open, func(claim dedup.Standing) bool {
		ended := claim.Left(now) <= 0
		if ended {
			c.Ended++
		}
		return ended
	})
}

// decided counts the answers, and returns the claims that have none.
func (c *Copied) decided(
	open []dedup.Standing, answers []dedup.Answer, repeated bool,
) (left []dedup.Standing) {
	for i := range answers {
		if answers[i].Outcome == dedup.Undecided {
			left = append(left, open[i])
			continue
		}
		c.note(&open[i], answers[i], repeated)
	}
	return left
}

// note counts an answer. After a failure a claim may have been made whose answer was lost.
func (c *Copied) note(claim *dedup.Standing, a dedup.Answer, repeated bool) {
	same := a.Owner == claim.Owner && a.Fingerprint == claim.Fingerprint &&
		a.ClaimedAt.Equal(claim.ClaimedAt)
	switch {
	case !same:
		c.Differ.add(claim, &dedup.Standing{ID: claim.ID, Owner: a.Owner,
			Fingerprint: a.Fingerprint, ClaimedAt: a.ClaimedAt})
	case a.Outcome == dedup.Applied, repeated:
		c.Copied++
	default:
		c.There++
	}
}
