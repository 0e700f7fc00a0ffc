package lookup

import (
	"context"
	"fmt"

	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/dedup"
)

// Release forgets the ID, and says what that was.
func (t *Question) Release(ctx context.Context) (said string, err error) {
	if err := connect.CheckMovedAway(ctx, t.Store, t.Scope); err != nil {
		return "", err
	}
	answer, err := t.Store.Lookup(ctx, t.Scope, t.ID)
	if err != nil {
		return "", err
	}
	if answer.Outcome == dedup.Undecided { // as it is for an ID without a claim
		return connect.ShownID(t.ID) + " was not claimed; nothing changed", nil
	}
	if err := t.Store.Release(ctx, t.Scope, t.ID); err != nil {
		return "", err
	}
	return connect.ShownID(t.ID) + " is free", nil
}

// Claim claims the ID for no record, and says for how long.
func (t *Question) Claim(ctx context.Context) (said string, err error) {
	if err := connect.CheckMoved(ctx, t.Store, t.Scope); err != nil {
		return "", err
	}
	if err := t.Store.Register(ctx, t.Scope); err != nil {
		return "", err
	}
	answers, err := t.Store.Claim(ctx, t.Scope, []dedup.Claim{{ID: t.ID, Owner: ManualOwner}})
	switch {
	case err != nil:
		return "", err
	case answers[0].Owner != ManualOwner:
		return "", fmt.Errorf(
			"%s is owned by the record at partition %d, offset %d; see kdedup id lookup",
			connect.ShownID(t.ID), answers[0].Owner.Partition, answers[0].Owner.Offset)
	}
	return fmt.Sprintf("%s is blocked for %s", connect.ShownID(t.ID), t.Topic.TTL), nil
}
