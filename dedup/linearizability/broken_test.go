package linearizability_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/memory"
	"github.com/kdedup/kdedup/internal/pause"
)

// claimer makes claims with a store, in a wrong way.
type claimer func(context.Context, dedup.Store, dedup.Scope, []dedup.Claim) ([]dedup.Answer, error)

type broken struct {
	dedup.Store
	claim claimer
}

func (b broken) Claim(
	ctx context.Context, scope dedup.Scope, claims []dedup.Claim,
) ([]dedup.Answer, error) {
	return b.claim(ctx, b.Store, scope, claims)
}

func (b broken) Find(
	ctx context.Context, scope dedup.Scope, ids []dedup.ID,
) ([]dedup.Standing, error) {
	return b.Store.(finder).Find(ctx, scope, ids)
}

// forgetful renews nothing, and says what one would say that does.
func forgetful(
	ctx context.Context, store dedup.Store, scope dedup.Scope, claims []dedup.Claim,
) ([]dedup.Answer, error) {
	scope.Sliding = false
	return store.Claim(ctx, scope, claims)
}

// changed changes the store's answers.
func changed(change func(dedup.Claim, *dedup.Answer)) claimer {
	return func(ctx context.Context, store dedup.Store, scope dedup.Scope,
		claims []dedup.Claim) ([]dedup.Answer, error) {
		answers, err := store.Claim(ctx, scope, claims)
		for i := range answers {
			change(claims[i], &answers[i])
		}
		return answers, err
	}
}

func applied(c dedup.Claim) dedup.Answer {
	now := time.UnixMilli(time.Now().UnixMilli())
	return dedup.Answer{Outcome: dedup.Applied, Owner: c.Owner, Fingerprint: c.Fingerprint,
		ClaimedAt: now}
}

// lookFirst claims what a look-up finds free, whatever happened in between.
func lookFirst(
	ctx context.Context, store dedup.Store, scope dedup.Scope, claims []dedup.Claim,
) ([]dedup.Answer, error) {
	answers := make([]dedup.Answer, len(claims))
	for i, c := range claims {
		found, err := store.Lookup(ctx, scope, c.ID)
		if err != nil {
			return answers, err
		}
		if found.Outcome == dedup.Exists {
			answers[i] = found
			continue
		}
		pause.For(ctx, time.Millisecond)
		if err := store.Release(ctx, scope, c.ID); err != nil {
			return answers, err
		}
		one, err := store.Claim(ctx, scope, claims[i:i+1])
		if err != nil {
			return answers, err
		}
		answers[i] = one[0]
	}
	return answers, nil
}

// cached remembers owners for a tenth of a second: wrong where an ID is released.
func cached() func(dedup.Claim, *dedup.Answer) {
	type entry struct {
		answer dedup.Answer
		ends   time.Time
	}
	var mu sync.Mutex
	entries := make(map[dedup.ID]entry)
	return func(c dedup.Claim, a *dedup.Answer) {
		mu.Lock()
		defer mu.Unlock()
		if e, ok := entries[c.ID]; ok && time.Now().Before(e.ends) && a.Outcome == dedup.Exists {
			*a = e.answer
		} else if a.Outcome == dedup.Exists {
			entries[c.ID] = entry{*a, time.Now().Add(100 * time.Millisecond)}
		}
	}
}

// The check would be worth nothing if it found nothing.
func TestABrokenStoreIsFound(t *testing.T) {
	for name, claim := range map[string]claimer{
		"a lost answer is taken for applied": changed(func(c dedup.Claim, a *dedup.Answer) {
			if a.Outcome == dedup.Undecided {
				*a = applied(c)
			}
		}),
		"a claim takes an ID from its owner, one time in a hundred": changed(func(c dedup.Claim,
			a *dedup.Answer) {
			if a.Outcome == dedup.Exists && rand.IntN(100) == 0 {
				*a = applied(c)
			}
		}),
		"a claim that was applied exists, one time in ten": changed(func(_ dedup.Claim,
			a *dedup.Answer) {
			if a.Outcome == dedup.Applied && rand.IntN(10) == 0 {
				a.Outcome = dedup.Exists
			}
		}),
		"a look-up decides":              lookFirst,
		"a renewal is told and not made": forgetful,
		"owners are cached":              changed(cached()),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := broken{memory.New(memory.Options{Faults: spoil}), claim}
			s := subject{[]dedup.Store{store, store}, &faults{}}
			for round := range 5 {
				if err := check(s.round(t, round, 2*time.Second)); err != nil {
					return
				}
			}
			t.Error("nothing was found")
		})
	}
}
