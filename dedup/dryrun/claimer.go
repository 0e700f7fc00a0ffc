// Package dryrun stands for a store in a command that only says what it would do.
package dryrun

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/kdedup/kdedup/dedup"
)

// Looker is the part of a store that a dry run needs; dedup.Store has the contract.
type Looker interface {
	Lookup(ctx context.Context, scope dedup.Scope, id dedup.ID) (dedup.Answer, error)
}

// Claimer answers claims as the store would now, and makes none. Copies that stand in different
// calls each count as claimed.
type Claimer struct{ Store Looker }

// lookupsAtOnce go to the store side by side.
const lookupsAtOnce = 64

// Claim implements dedup.Claimer.
func (d Claimer) Claim(
	ctx context.Context, scope dedup.Scope, claims []dedup.Claim,
) ([]dedup.Answer, error) {
	answers := make([]dedup.Answer, len(claims))
	lookups, ctx := errgroup.WithContext(ctx)
	lookups.SetLimit(lookupsAtOnce)
	for i := range claims {
		lookups.Go(func() error {
			answer, err := d.Store.Lookup(ctx, scope, claims[i].ID)
			if err != nil {
				return err
			}
			if answer.Outcome == dedup.Undecided { // nobody owns it
				answer = dedup.Answer{Outcome: dedup.Applied, Owner: claims[i].Owner,
					Fingerprint: claims[i].Fingerprint}
			}
			answers[i] = answer
			return nil
		})
	}
	if err := lookups.Wait(); err != nil {
		return answers, fmt.Errorf("look up %d ids: %w", len(claims), err)
	}
	return answers, nil
}
