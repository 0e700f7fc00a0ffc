package pipeline

import (
	"context"
	"errors"
	"testing/synctest"
	"time"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/memory"
)

var modelScope = dedup.Scope{ConsumerGroup: "orders-dedup", Name: modelInput, TTL: modelTTL, Buckets: 1}

// modelClaims is the truth about one ID: who owned it, one after the other.
type modelClaims struct {
	episodes []*modelEpisode
	dropped  int // copies of episodes before this one were dropped in committed batches
}

// modelEpisode is one claim, from its making to its end.
type modelEpisode struct {
	number int
	owner  *modelSource
	made   time.Time
	final  *modelAttempt // forwarded or dead-lettered the owner, and that was made final
	first  *modelAttempt // was told that its claim made the owner the owner
	sent   *modelAttempt // the first that wrote the owner to the clean or the dead-letter topic
}

func (c *modelClaims) last() *modelEpisode {
	if len(c.episodes) == 0 {
		return nil
	}
	return c.episodes[len(c.episodes)-1]
}

// lateClaim is a claim whose caller got no answer and that may still take effect.
type lateClaim struct{ claim dedup.Claim }

// modelStore stands between a lane and the memory store. It splits calls, as a store with buckets
// does, lets others act before each part and after it, and has claims and answers lost.
type modelStore struct{ lane *modelLane }

var errModelStore = errors.New("model: store did not answer")

// Claim implements dedup.Claimer.
func (m modelStore) Claim(ctx context.Context, scope dedup.Scope, claims []dedup.Claim) ([]dedup.Answer, error) {
	answers := make([]dedup.Answer, len(claims))
	var failed error
	for from := 0; from < len(claims); {
		to := min(len(claims), from+1+m.lane.w.dice.n(len(claims)))
		m.lane.pause()
		m.deliverInterrupt(ctx)
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
	m.lane.pause()
	return answers, failed
}

// deliverInterrupt cancels a batch that lost its partitions before it was in hand.
func (m modelStore) deliverInterrupt(ctx context.Context) {
	if s := m.lane.session; s.interrupted && ctx.Err() == nil {
		s.interruptBatch()
		synctest.Wait()
	}
}

func (m modelStore) claim(ctx context.Context, scope dedup.Scope, c *dedup.Claim, answer *dedup.Answer) error {
	w, a := m.lane.w, m.lane.session.attempt
	a.asked(c)
	switch {
	case w.storeDown, w.fault(faultClaimLost):
		return errModelStore
	case w.fault(faultClaimLate):
		w.late = append(w.late, lateClaim{*c})
		return errModelStore
	}
	got, err := w.claim(ctx, scope, c)
	if err != nil {
		return err
	}
	if w.fault(faultClaimUnreported) {
		w.trace(m.lane.slot, "claim of %q takes effect, unanswered", c.ID)
		return errModelStore
	}
	*answer = got
	a.answers[c.ID] = w.claims[c.ID].last()
	if got.Outcome == dedup.Applied {
		a.answers[c.ID].first = a
	}
	return nil
}

// claim asks the store and writes down who owns the ID now. It takes a moment on the bubble's clock:
// claims that were made one after the other can be told apart.
func (w *modelWorld) claim(ctx context.Context, scope dedup.Scope, c *dedup.Claim) (dedup.Answer, error) {
	time.Sleep(time.Millisecond)
	got, err := w.store.Claim(ctx, scope, []dedup.Claim{*c})
	if err != nil {
		return dedup.Answer{}, err
	}
	truth := w.claims[c.ID]
	if truth == nil {
		truth = &modelClaims{}
		w.claims[c.ID] = truth
	}
	if got[0].Outcome == dedup.Applied {
		owner := w.sourceAt(c.Owner)
		truth.episodes = append(truth.episodes, &modelEpisode{number: len(truth.episodes), owner: owner, made: time.Now()})
		if len(truth.episodes) > 1 {
			w.saw(sightExpired)
		}
		w.trace(-1, "%v owns %q from now on", owner, c.ID)
	}
	if truth.last().owner.owner() != got[0].Owner {
		w.failf("the store says that %v owns %q, not %v", got[0].Owner, c.ID, truth.last().owner)
	}
	return got[0], nil
}

// landLate lets a late claim take effect, or drops it for good.
func (w *modelWorld) landLate() {
	if len(w.late) == 0 {
		return
	}
	i := w.dice.n(len(w.late))
	c := w.late[i].claim
	w.late = append(w.late[:i], w.late[i+1:]...)
	if w.dice.oneIn(2) {
		w.trace(-1, "a late claim of %q takes effect", c.ID)
		w.saw(sightLateClaim)
		_, _ = w.claim(context.Background(), modelScope, &c)
	}
}

// passTime moves the clock, by up to a bit more than a claim holds. No request is under way for that
// long.
func (w *modelWorld) passTime() {
	d := []time.Duration{modelTTL / 20, modelTTL / 3, modelTTL + time.Second}[w.dice.n(3)]
	w.late = nil
	time.Sleep(d) // of the bubble
	w.trace(-1, "%v pass", d)
}

// newStore is a store on the clock of the bubble.
func newStore(w *modelWorld) *memory.Store {
	return memory.New(memory.Options{Violation: func(format string, args ...any) {
		w.failf("the store's contract: "+format, args...)
	}})
}
