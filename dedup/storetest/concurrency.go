package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/kdedup/kdedup/dedup"
)

var concurrencyBehaviours = []behaviour{
	{"of many claimants of one id exactly one wins", oneWinner},
	{"all methods are safe for concurrent use", allMethods},
}

// oneWinner lets claimants meet over the same IDs, each in an order of its own.
func oneWinner(t *testing.T, s *subject) {
	const claimants, ids = 64, 1000
	scope := newScope()
	var (
		answers  [claimants][]dedup.Answer
		repeated [claimants]bool
		group    errgroup.Group
	)
	for n := range claimants {
		group.Go(func() (err error) {
			answers[n], repeated[n], err = s.claimShuffled(t.Context(), scope, ids, n)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for id := range ids {
		winners, applied, unsure := 0, 0, false
		for n := range claimants {
			got := answers[n][id]
			if got.Owner != answers[0][id].Owner || got.Fingerprint != answers[0][id].Fingerprint {
				t.Fatalf("id %d: claimants 0 and %d were told different owners: %+v and %+v", id,
					n, answers[0][id], got)
			}
			if got.Owner == owner(n) {
				winners++
				unsure = unsure || repeated[n] || s.features.Repeats
			}
			if got.Outcome == dedup.Applied {
				applied++
			}
		}
		if winners != 1 || applied > 1 || (applied == 0 && !unsure) {
			t.Fatalf("id %d: %d winners, %d applied, want one", id, winners, applied)
		}
	}
}

// claimShuffled claims the IDs 0 … count-1 for record n in batches of random order and returns the
// answers by ID.
func (s *subject) claimShuffled(
	ctx context.Context, scope dedup.Scope, count, n int,
) ([]dedup.Answer, bool, error) {
	const batch = 250
	random := rand.New(rand.NewPCG(uint64(n), 1))
	order := random.Perm(count)
	byID := make([]dedup.Answer, count)
	anyRepeated := false
	for len(order) > 0 {
		part := order[:min(batch, len(order))]
		order = order[len(part):]
		claims := make([]dedup.Claim, len(part))
		for i, id := range part {
			claims[i] = claimOf(fmt.Sprintf("id-%06d", id), n)
		}
		answers, repeated, err := s.insist(ctx, scope, claims)
		if err != nil {
			return nil, false, err
		}
		anyRepeated = anyRepeated || repeated
		for i, id := range part {
			byID[id] = answers[i]
		}
	}
	return byID, anyRepeated, nil
}

// allMethods is for the race detector; releases make most answers a matter of luck, so it checks
// that an owner is one of the claimants.
func allMethods(t *testing.T, s *subject) {
	const workers, rounds, ids = 8, 25, 20
	scope := newScope()
	var group errgroup.Group
	for n := range workers {
		group.Go(func() error {
			for round := range rounds {
				if err := s.everyMethod(t.Context(), scope, n, round%ids, ids); err != nil {
					return fmt.Errorf("worker %d, round %d: %w", n, round, err)
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

func (s *subject) everyMethod(ctx context.Context, scope dedup.Scope, n, id, ids int) error {
	if err := s.Register(ctx, scope); err != nil {
		return err
	}
	claims := claimsOf(ids, 0)
	for i := range claims {
		claims[i].Owner = owner(n)
	}
	answers, _, err := s.insist(ctx, scope, claims)
	if err != nil {
		return err
	}
	found, err := s.Lookup(ctx, scope, claims[id].ID)
	if err != nil {
		return err
	}
	if found.Outcome != dedup.Undecided {
		answers = append(answers, found)
	}
	for _, a := range answers {
		if a.Owner != owner(int(a.Owner.Offset)) || a.Owner.Offset > 7 {
			return fmt.Errorf("answer %+v names an owner that never claimed", a)
		}
	}
	return s.Release(ctx, scope, claims[id].ID)
}
