package dedup

import (
	"context"
	"crypto/rand"
)

// A store has an identity, a random text that stands in it as long as its registrations do. Fences
// name the store whose claims they build on. So a store that knows nothing of what was handled is
// noticed: another directory, keyspace or prefix, or one that was lost and made again.
const identityGroup = "kdedup.store"

var identityEntry = entry{identityGroup, "identity"}

// Identified is implemented by stores that keep the claims of each consumer group in a place of its
// own, which may be lost without the registrations.
type Identified interface {
	// Identity is of the place that has the scope's claims, if it has one: another one once that
	// was lost and made again.
	Identity(ctx context.Context, scope Scope) (identity string, found bool, err error)
	// Identify is Identity, and gives the place one if it has none.
	Identify(ctx context.Context, scope Scope) (string, error)
}

// IdentityOf returns the identity of the store that has the claims of a scope, if it has one.
func IdentityOf(
	ctx context.Context, store Store, scope Scope,
) (identity string, found bool, err error) {
	if own, is := Unwrapped(store).(Identified); is {
		return own.Identity(ctx, scope)
	}
	return catalogOf(store).read(ctx, identityEntry)
}

// Identify is IdentityOf, and gives the store an identity if it has none.
func Identify(ctx context.Context, store Store, scope Scope) (string, error) {
	if own, is := Unwrapped(store).(Identified); is {
		return own.Identify(ctx, scope)
	}
	return catalogOf(store).propose(ctx, identityEntry, rand.Text())
}

// StandsFor reports whether the store was declared to stand for another one, whose claims are gone.
func StandsFor(ctx context.Context, store Store, scope Scope, other string) (bool, error) {
	e, err := standingFor(ctx, store, scope, other)
	if err != nil {
		return false, err
	}
	return catalogOf(store).has(ctx, e)
}

// DeclareFor makes a store stand for another one.
func DeclareFor(ctx context.Context, store Store, scope Scope, other string) error {
	e, err := standingFor(ctx, store, scope, other)
	if err != nil {
		return err
	}
	_, err = catalogOf(store).propose(ctx, e, yes)
	return err
}

// standingFor is under what a declaration is noted. Where the claims may be lost without it, it is
// of those that there are now.
func standingFor(
	ctx context.Context, store Store, scope Scope, other string,
) (entry, error) {
	own, is := Unwrapped(store).(Identified)
	if !is {
		return entry{identityGroup, "stands for " + other}, nil
	}
	identity, err := own.Identify(ctx, scope)
	return entry{scope.ConsumerGroup, "kdedup.store " + identity + " stands for " + other}, err
}

// yes is the text of an entry that says all by being there.
const yes = "yes"

// ClusterOf returns the Kafka cluster whose input a scope's claims are of, if it is known. Owners
// are places in its logs: the same records on another cluster are other records.
func ClusterOf(
	ctx context.Context, store Store, scope Scope, input string,
) (cluster string, found bool, err error) {
	return catalogOf(store).read(ctx, clusterEntry(scope, input))
}

// NoteCluster notes the cluster of a scope and input, unless one is noted; it returns the one that
// is.
func NoteCluster(
	ctx context.Context, store Store, scope Scope, input, cluster string,
) (string, error) {
	return catalogOf(store).propose(ctx, clusterEntry(scope, input), cluster)
}

// SharedWith reports whether the scope was declared to be shared with another cluster.
func SharedWith(
	ctx context.Context, store Store, scope Scope, input, cluster string,
) (bool, error) {
	return catalogOf(store).has(ctx, sharedEntry(scope, input, cluster))
}

// ShareWith declares that a scope is shared by clusters.
func ShareWith(ctx context.Context, store Store, scope Scope, input, cluster string) error {
	_, err := catalogOf(store).propose(ctx, sharedEntry(scope, input, cluster), yes)
	return err
}

// Began reports whether a set of scopes was noted to have begun, of which this is one. Where claims
// may be lost without the registrations, the note is beside those of each scope.
func Began(ctx context.Context, store Store, scope Scope, set string) (bool, error) {
	return catalogOf(store).has(ctx, beginEntry(store, scope, set))
}

// NoteBegan notes that a set of scopes has begun. The zero scope stands for a set that is still
// empty, which not every store can note.
func NoteBegan(ctx context.Context, store Store, scope Scope, set string) error {
	e := beginEntry(store, scope, set)
	if scope == (Scope{}) && e.group == "" {
		return nil
	}
	_, err := catalogOf(store).propose(ctx, e, yes)
	return err
}

func beginEntry(store Store, scope Scope, set string) entry {
	e := entry{identityGroup, "kdedup.began " + set}
	if _, is := Unwrapped(store).(Identified); is {
		e.group = scope.ConsumerGroup
	}
	return e
}

// clusterEntry has a character that no topic's name has.
func clusterEntry(scope Scope, input string) entry {
	return entry{scope.ConsumerGroup, "kdedup.cluster " + scope.Name + " " + input}
}

func sharedEntry(scope Scope, input, cluster string) entry {
	e := clusterEntry(scope, input)
	e.name += " " + cluster
	return e
}
