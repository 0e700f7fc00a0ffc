package dedup

import "context"

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

func (n MoveNote) entry(scope Scope) entry {
	return entry{scope.ConsumerGroup, string(n) + " " + scope.Name}
}

// Read returns the text of the note, if there is one.
func (n MoveNote) Read(
	ctx context.Context, store Store, scope Scope,
) (text string, found bool, err error) {
	return catalogOf(store).read(ctx, n.entry(scope))
}

// Write leaves the note, in the place of one with another text.
func (n MoveNote) Write(ctx context.Context, store Store, scope Scope, text string) error {
	return catalogOf(store).replace(ctx, n.entry(scope), text)
}

// Erase takes the note away, if there is one.
func (n MoveNote) Erase(ctx context.Context, store Store, scope Scope) error {
	return catalogOf(store).withdraw(ctx, n.entry(scope))
}

// StandsUpTo returns up to where a store stands for another one whose claims were moved into it: a
// text of whoever declared it.
func StandsUpTo(
	ctx context.Context, store Store, scope Scope, input, other string,
) (text string, found bool, err error) {
	e, err := standingUpTo(ctx, store, scope, input, other)
	if err != nil {
		return "", false, err
	}
	return catalogOf(store).read(ctx, e)
}

// DeclareUpTo says so, in the place of what was said before. Nobody claims in the scope meanwhile.
func DeclareUpTo(
	ctx context.Context, store Store, scope Scope, input, other, text string,
) error {
	e, err := standingUpTo(ctx, store, scope, input, other)
	if err != nil {
		return err
	}
	return catalogOf(store).replace(ctx, e, text)
}

func standingUpTo(
	ctx context.Context, store Store, scope Scope, input, other string,
) (entry, error) {
	e, err := standingFor(ctx, store, scope, other)
	return entry{scope.ConsumerGroup, e.name + " for " + scope.Name + " " + input}, err
}
