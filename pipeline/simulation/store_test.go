//go:build !race

package simulation

import (
	"context"
	"errors"
	"time"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/memory"
)

var scope = dedup.Scope{ConsumerGroup: "orders-dedup", Name: inputTopic, TTL: ttl, Buckets: 1}

// claimsOf is the truth about one ID: who owned it, one after the other.
type claimsOf struct {
	episodes []*episode
	dropped  int // copies of episodes before this one were dropped in committed batches
}

// episode is one claim, from its making to its end.
type episode struct {
	number int
	owner  *source
	made   time.Time
	final  *attempt // forwarded or dead-lettered the owner, and that was made final
	first  *attempt // was told that its claim made the owner the owner
	sent   *attempt // the first that wrote the owner to the clean or the dead-letter topic
	// astray: a member that was given up claimed again what others had handled. docs/guarantees.md
	// says what that may lose.
	astray bool
	again  bool // its owner had been handled when it was made
}

func (c *claimsOf) last() *episode {
	if len(c.episodes) == 0 {
		return nil
	}
	return c.episodes[len(c.episodes)-1]
}

// lateClaim is a claim whose caller got no answer and that may still take effect.
type lateClaim struct {
	claim dedup.Claim
	by    *client
}

// store stands between a lane and the memory store. It splits calls, as a store with buckets
// does, lets others act before each part and after it, and has claims and answers lost.
type store struct{ process *process }

var errStore = errors.New("model: store did not answer")

// Claim implements dedup.Claimer.
func (m store) Claim(
	ctx context.Context, scope dedup.Scope, claims []dedup.Claim,
) ([]dedup.Answer, error) {
	answers := make([]dedup.Answer, len(claims))
	var failed error
	for from := 0; from < len(claims); {
		m.process.pause("claim", nil)
		to := min(len(claims), from+1+m.process.w.dice.n(len(claims)))
		if ctx.Err() != nil {
			return answers, ctx.Err()
		}
		for i := from; i < to; i++ {
			if err := m.claim(ctx, scope, &claims[i], &answers[i]); err != nil {
				failed = err
			}
		}
		from = to
	}
	m.process.pause("claim", nil)
	return answers, failed
}

func (m store) claim(
	ctx context.Context, scope dedup.Scope, c *dedup.Claim, answer *dedup.Answer,
) error {
	w, a := m.process.w, m.process.client.attempt
	a.asked(c)
	switch {
	case w.storeDown, w.fault(faultClaimLost):
		return errStore
	case w.fault(faultClaimLate):
		w.late = append(w.late, lateClaim{*c, m.process.client})
		return errStore
	}
	got, err := w.claim(ctx, scope, c, m.process.client)
	if err != nil {
		return err
	}
	if w.fault(faultClaimUnreported) {
		w.trace(m.process.slot, "claim of %q takes effect, unanswered", c.ID)
		return errStore
	}
	*answer = got
	a.answers[c.ID] = w.claims[c.ID].last()
	if got.Outcome == dedup.Applied {
		a.answers[c.ID].first = a
	}
	return nil
}

// claim asks the store and writes down who owns the ID now.
func (w *world) claim(
	ctx context.Context, scope dedup.Scope, c *dedup.Claim, by *client,
) (dedup.Answer, error) {
	w.skew = w.slots[by.process.slot].skew
	got, err := w.store.Claim(ctx, scope, []dedup.Claim{*c})
	if err != nil {
		return dedup.Answer{}, err
	}
	truth := w.claims[c.ID]
	if truth == nil {
		truth = &claimsOf{}
		w.claims[c.ID] = truth
	}
	if got[0].Outcome == dedup.Applied {
		owner := w.input[c.Owner.Partition].at(c.Owner.Offset, c.Owner.LeaderEpoch)
		truth.episodes = append(truth.episodes, &episode{
			number: len(truth.episodes), owner: owner, made: time.Now(),
			again:  owner.handled,
			astray: owner.handled && w.group.owner[owner.record.Partition] != by,
		})
		if len(truth.episodes) > 1 {
			w.saw(sightExpired)
		}
		w.trace(-1, "%v owns %q from now on", owner, c.ID)
	}
	if !truth.last().owner.owner().Same(got[0].Owner) {
		w.failf("the store says that %v owns %q, not %v", got[0].Owner, c.ID, truth.last().owner)
	}
	return got[0], nil
}

// landLate lets a late claim take effect, or drops it for good.
func (w *world) landLate() {
	if len(w.late) == 0 {
		return
	}
	i := w.dice.n(len(w.late))
	late := w.late[i]
	w.late = append(w.late[:i], w.late[i+1:]...)
	if w.dice.oneIn(2) {
		w.trace(-1, "a late claim of %q takes effect", late.claim.ID)
		w.saw(sightLateClaim)
		_, _ = w.claim(context.Background(), scope, &late.claim, late.by)
	}
}

// passTime moves the clock, by up to a bit more than a claim holds. No request is under way for
// that long.
func (w *world) passTime() {
	d := []time.Duration{ttl / 20, ttl / 3, ttl + time.Second}[w.dice.n(3)]
	w.late = nil
	w.publish()
	time.Sleep(d) // of the bubble
	w.trace(-1, "%v pass", d)
}

// newStore is a store on the clock of the bubble.
func newStore(w *world) *memory.Store {
	return memory.New(memory.Options{Now: func() time.Time {
		return time.Now().Add(w.skew)
	}, Violation: func(format string, args ...any) {
		w.failf("the store's contract: "+format, args...)
	}})
}
