package dedup

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"
)

// A store has an identity, a random text that stands in it as long as its registrations do. Fences
// name the store whose claims they build on. So a store that knows nothing of what was handled is
// noticed: another directory, keyspace or prefix, or one that was lost and made again.
//
// It is kept as the registration of a scope without claims. So every store has it, whatever its
// version of tables or files.
const identityGroup = "kdedup.store"

// Identified is implemented by stores that keep the claims of each consumer group in a place of its
// own, which may be lost without the registrations.
type Identified interface {
	// Identity is of the place that has the scope's claims, if it has one: another one once that
	// was lost and made again.
	Identity(ctx context.Context, scope Scope) (identity string, found bool, err error)
	// Identify is Identity, and gives the place one if it has none.
	Identify(ctx context.Context, scope Scope) (string, error)
}

// identityTTL is that of a scope in which nothing is claimed.
const identityTTL = time.Hour

// identityMark precedes the text in the place of an extractor.
const identityMark = "store:"

// IdentityOf returns the identity of the store that has the claims of a scope, if it has one.
func IdentityOf(
	ctx context.Context, store Store, scope Scope,
) (identity string, found bool, err error) {
	if own, is := Unwrapped(store).(Identified); is {
		return own.Identity(ctx, scope)
	}
	return noted(ctx, store, identityGroup, "identity")
}

// Identify is IdentityOf, and gives the store an identity if it has none.
func Identify(ctx context.Context, store Store, scope Scope) (string, error) {
	if own, is := Unwrapped(store).(Identified); is {
		return own.Identify(ctx, scope)
	}
	return note(ctx, store, identityGroup, "identity", rand.Text())
}

// StandsFor reports whether the store was declared to stand for another one, whose claims are gone.
func StandsFor(ctx context.Context, store Store, scope Scope, other string) (bool, error) {
	group, name, err := standingFor(ctx, store, scope, other)
	if err != nil {
		return false, err
	}
	_, found, err := noted(ctx, store, group, name)
	return found, err
}

// DeclareFor makes a store stand for another one.
func DeclareFor(ctx context.Context, store Store, scope Scope, other string) error {
	group, name, err := standingFor(ctx, store, scope, other)
	if err != nil {
		return err
	}
	_, err = note(ctx, store, group, name, "yes")
	return err
}

// standingFor is under what a declaration is noted. Where the claims may be lost without it, it is
// of those that there are now.
func standingFor(
	ctx context.Context, store Store, scope Scope, other string,
) (group, name string, err error) {
	own, is := Unwrapped(store).(Identified)
	if !is {
		return identityGroup, "stands for " + other, nil
	}
	identity, err := own.Identify(ctx, scope)
	return scope.ConsumerGroup, "kdedup.store " + identity + " stands for " + other, err
}

// ClusterOf returns the Kafka cluster whose input a scope's claims are of, if it is known. Owners
// are places in its logs: the same records on another cluster are other records.
func ClusterOf(
	ctx context.Context, store Store, scope Scope, input string,
) (cluster string, found bool, err error) {
	return noted(ctx, store, scope.ConsumerGroup, clusterName(scope, input))
}

// NoteCluster notes the cluster of a scope and input, unless one is noted; it returns the one that
// is.
func NoteCluster(
	ctx context.Context, store Store, scope Scope, input, cluster string,
) (string, error) {
	return note(ctx, store, scope.ConsumerGroup, clusterName(scope, input), cluster)
}

// SharedWith reports whether the scope was declared to be shared with another cluster.
func SharedWith(
	ctx context.Context, store Store, scope Scope, input, cluster string,
) (bool, error) {
	_, found, err := noted(ctx, store, scope.ConsumerGroup, clusterName(scope, input)+" "+cluster)
	return found, err
}

// ShareWith declares that a scope is shared by clusters.
func ShareWith(ctx context.Context, store Store, scope Scope, input, cluster string) error {
	_, err := note(ctx, store, scope.ConsumerGroup, clusterName(scope, input)+" "+cluster, "yes")
	return err
}

// Began reports whether a set of scopes was noted to have begun, of which this is one. Where claims
// may be lost without the registrations, the note is beside those of each scope.
func Began(ctx context.Context, store Store, scope Scope, set string) (bool, error) {
	_, found, err := noted(ctx, store, beginGroup(store, scope), beginName(set))
	return found, err
}

// NoteBegan notes that a set of scopes has begun. The zero scope stands for a set that is still
// empty, which not every store can note.
func NoteBegan(ctx context.Context, store Store, scope Scope, set string) error {
	if scope == (Scope{}) && beginGroup(store, scope) == "" {
		return nil
	}
	_, err := note(ctx, store, beginGroup(store, scope), beginName(set), "yes")
	return err
}

func beginGroup(store Store, scope Scope) string {
	if _, is := Unwrapped(store).(Identified); is {
		return scope.ConsumerGroup
	}
	return identityGroup
}

func beginName(set string) string { return "kdedup.began " + set }

// clusterName has a character that no topic's name has.
func clusterName(scope Scope, input string) string {
	return "kdedup.cluster " + scope.Name + " " + input
}

// note keeps a text under a name, unless there is one; it returns the one that stands.
func note(ctx context.Context, store Store, group, name, text string) (string, error) {
	if kept, found, err := noted(ctx, store, group, name); err != nil || found {
		return kept, err // as at every start but the first: it costs no decision of the store
	}
	scope := noteScope(group, name)
	scope.Extractor = identityMark + text
	if err := store.Register(ctx, scope); err != nil && !errors.Is(err, ErrScopeMismatch) {
		return "", err
	}
	kept, found, err := noted(ctx, store, group, name)
	if err == nil && !found {
		err = fmt.Errorf("the store does not keep the note %s/%s", group, name)
	}
	return kept, err
}

func noted(
	ctx context.Context, store Store, group, name string,
) (text string, found bool, err error) {
	registered, found, err := store.Registered(ctx, noteScope(group, name))
	return strings.TrimPrefix(registered.Extractor, identityMark), found, err
}

func noteScope(group, name string) Scope {
	return Scope{ConsumerGroup: group, Name: name, TTL: identityTTL, Buckets: 1}
}
