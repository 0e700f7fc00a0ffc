package dedup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// A catalog is the small texts that stand in a store beside its scopes: who the store is, on which
// cluster its claims were made, where they were moved. Each entry keeps the first text that
// somebody proposed, until it is withdrawn.
//
// An entry is the registration of a scope without claims, with the text in the place of the
// extractor. So every store has a catalog, whatever its version of tables or files.
type catalog struct{ Store }

func catalogOf(store Store) catalog { return catalog{store} }

// entry is the name of a text, beside those of scopes.
type entry struct{ group, name string }

func (e entry) String() string { return e.group + "/" + e.name }

const (
	entryTTL  = time.Hour // of a scope in which nothing is claimed
	entryMark = "store:"  // precedes the text
)

func (e entry) scope() Scope {
	return Scope{ConsumerGroup: e.group, Name: e.name, TTL: entryTTL, Buckets: 1}
}

// read returns the text, if there is one.
func (c catalog) read(ctx context.Context, e entry) (text string, found bool, err error) {
	registered, found, err := c.Registered(ctx, e.scope())
	return strings.TrimPrefix(registered.Extractor, entryMark), found, err
}

// has reports whether there is a text.
func (c catalog) has(ctx context.Context, e entry) (bool, error) {
	_, found, err := c.read(ctx, e)
	return found, err
}

// propose keeps a text, unless there is one; it returns the one that stands.
func (c catalog) propose(ctx context.Context, e entry, text string) (string, error) {
	if kept, found, err := c.read(ctx, e); err != nil || found {
		return kept, err // as at every start but the first: it costs no decision of the store
	}
	scope := e.scope()
	scope.Extractor = entryMark + text
	if err := c.Register(ctx, scope); err != nil && !errors.Is(err, ErrScopeMismatch) {
		return "", err
	}
	kept, found, err := c.read(ctx, e)
	if err == nil && !found {
		err = fmt.Errorf("the store does not keep the note %s", e)
	}
	return kept, err
}

// replace keeps a text in the place of another one.
func (c catalog) replace(ctx context.Context, e entry, text string) error {
	kept, found, err := c.read(ctx, e)
	if err != nil || found && kept == text {
		return err
	}
	if found {
		if err := c.withdraw(ctx, e); err != nil {
			return err
		}
	}
	kept, err = c.propose(ctx, e, text)
	if err == nil && kept != text {
		err = errors.New("somebody else has left another note meanwhile")
	}
	if err != nil {
		return fmt.Errorf("leave the note %s: %w", e, err)
	}
	return nil
}

// withdraw takes a text away, if there is one.
func (c catalog) withdraw(ctx context.Context, e entry) error {
	found, err := c.has(ctx, e)
	if err != nil || !found {
		return err
	}
	return c.Forget(ctx, e.scope())
}
