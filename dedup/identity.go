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

// identityTTL is that of a scope in which nothing is claimed.
const identityTTL = time.Hour

// identityMark precedes the text in the place of an extractor.
const identityMark = "store:"

// IdentityOf returns the identity of a store, if it has one.
func IdentityOf(ctx context.Context, store Store) (identity string, found bool, err error) {
	return noted(ctx, store, identityGroup, "identity")
}

// Identify returns the identity of a store, and gives it one if it has none.
func Identify(ctx context.Context, store Store) (string, error) {
	return note(ctx, store, identityGroup, "identity", rand.Text())
}

// StandsFor reports whether the store was declared to stand for another one, whose claims are gone.
func StandsFor(ctx context.Context, store Store, other string) (bool, error) {
	_, found, err := noted(ctx, store, identityGroup, "stands for "+other)
	return found, err
}

// DeclareFor makes a store stand for another one.
func DeclareFor(ctx context.Context, store Store, other string) error {
	_, err := note(ctx, store, identityGroup, "stands for "+other, "yes")
	return err
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

// clusterName has a character that no topic's name has.
func clusterName(scope Scope, input string) string {
	return "kdedup.cluster " + scope.Name + " " + input
}

// note keeps a text under a name, unless there is one; it returns the one that stands.
func note(ctx context.Context, store Store, group, name, text string) (string, error) {
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
