package dedup

import (
	"context"
	"errors"
	"fmt"
)

// MoveNote is what a move of a scope's claims leaves in a store about that scope. Who begins to
// claim in the scope looks for both first.
type MoveNote string

const (
	// NotAllHere is in the store that claims are moved to, until all of them are there: what is
	// missing would pass.
	NotAllHere MoveNote = "kdedup.arriving"
	// MovedAway is in the store that claims were moved from: others go on without it.
	MovedAway MoveNote = "kdedup.moved"
)

func (n MoveNote) name(scope Scope) string { return string(n) + " " + scope.Name }

// Read returns the text of the note, if there is one.
func (n MoveNote) Read(
	ctx context.Context, store Store, scope Scope,
) (text string, found bool, err error) {
	return noted(ctx, store, scope.ConsumerGroup, n.name(scope))
}

// Write leaves the note, in the place of one with another text.
func (n MoveNote) Write(ctx context.Context, store Store, scope Scope, text string) error {
	return renote(ctx, store, scope.ConsumerGroup, n.name(scope), text)
}

// Erase takes the note away, if there is one.
func (n MoveNote) Erase(ctx context.Context, store Store, scope Scope) error {
	return unnote(ctx, store, scope.ConsumerGroup, n.name(scope))
}

// StandsUpTo returns up to where a store stands for another one whose claims were moved into it: a
// text of whoever declared it.
func StandsUpTo(
	ctx context.Context, store Store, scope Scope, input, other string,
) (text string, found bool, err error) {
	group, name, err := standingUpTo(ctx, store, scope, input, other)
	if err != nil {
		return "", false, err
	}
	return noted(ctx, store, group, name)
}

// DeclareUpTo says so, in the place of what was said before. Nobody claims in the scope meanwhile.
func DeclareUpTo(
	ctx context.Context, store Store, scope Scope, input, other, text string,
) error {
	group, name, err := standingUpTo(ctx, store, scope, input, other)
	if err != nil {
		return err
	}
	return renote(ctx, store, group, name, text)
}

func standingUpTo(
	ctx context.Context, store Store, scope Scope, input, other string,
) (group, name string, err error) {
	_, name, err = standingFor(ctx, store, scope, other)
	return scope.ConsumerGroup, name + " for " + scope.Name + " " + input, err
}

// renote keeps a text under a name, in the place of another one.
func renote(ctx context.Context, store Store, group, name, text string) error {
	kept, found, err := noted(ctx, store, group, name)
	if err != nil || found && kept == text {
		return err
	}
	if found {
		if err := unnote(ctx, store, group, name); err != nil {
			return err
		}
	}
	kept, err = note(ctx, store, group, name, text)
	if err == nil && kept != text {
		err = errors.New("somebody else has left another note meanwhile")
	}
	if err != nil {
		return fmt.Errorf("leave the note %s/%s: %w", group, name, err)
	}
	return nil
}

func unnote(ctx context.Context, store Store, group, name string) error {
	_, found, err := noted(ctx, store, group, name)
	if err != nil || !found {
		return err
	}
	return store.Forget(ctx, noteScope(group, name))
}
