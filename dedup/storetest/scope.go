package storetest

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/kdedup/kdedup/dedup"
)

var scopeBehaviours = []behaviour{
	{"scopes are namespaces", scopesAreNamespaces},
	{"scope names are not run together", scopeNamesAreNotRunTogether},
	{"registering again with the same settings is fine", registerAgain},
	{"other settings are refused", registerOther},
	{"the ttl of a scope may change", registerOtherTTL},
	{"of registrations at the same time one decides", registerAtOnce},
	{"registered settings are told", registeredTells},
	{"asking for the settings registers nothing", registeredChangesNothing},
	{"a scope without claims may be registered again", amendScope},
	{"a forgotten scope is empty and may be registered again", forgottenScope},
}

func scopesAreNamespaces(t *testing.T, s *subject) {
	scope := newScope()
	otherGroup, otherName := scope, scope
	otherGroup.ConsumerGroup += "2"
	otherName.Name += "2"
	scopes := []dedup.Scope{scope, otherGroup, otherName}
	for n, scope := range scopes {
		c := claimOf("order-1", n)
		s.wantApplied(t, s.claim(t, scope, c)[0], c)
	}
	s.release(t, otherGroup, "order-1")
	s.wantFree(t, otherGroup, "order-1")
	wantExists(t, s.lookup(t, scope, "order-1"), claimOf("order-1", 0))
	wantExists(t, s.lookup(t, otherName, "order-1"), claimOf("order-1", 2))
}

// scopeNamesAreNotRunTogether uses scopes and IDs that are equal once they are concatenated.
func scopeNamesAreNotRunTogether(t *testing.T, s *subject) {
	base := newScope()
	for n, row := range []struct{ group, name, id string }{
		{"a", "b", "cd"}, {"ab", "", "cd"}, {"a", "bc", "d"}, {"ab", "c", "d"}, {"a/b", "c", "d"},
		{"a", "b/c", "d"}, {"a:b", "c", "d"}, {"a", "b:c", "d"},
	} {
		scope := base
		scope.ConsumerGroup += row.group
		scope.Name = row.name + "t"
		c := claimOf(row.id, n)
		s.wantApplied(t, s.claim(t, scope, c)[0], c)
	}
}

func (s *subject) register(t *testing.T, scope dedup.Scope) {
	t.Helper()
	s.once(scope).Do(func() {})
	if err := s.Register(t.Context(), scope); err != nil {
		t.Fatalf("Register: %v", err)
	}
}

func registerAgain(t *testing.T, s *subject) {
	scope := newScope()
	s.register(t, scope)
	s.register(t, scope)
	c := claimOf("order-1", 1)
	s.wantApplied(t, s.claim(t, scope, c)[0], c)
	s.register(t, scope)
}

func registerOther(t *testing.T, s *subject) {
	for _, row := range []struct {
		name  string
		scope func(dedup.Scope) dedup.Scope
		both  []string // what the error names
	}{
		{"buckets", func(s dedup.Scope) dedup.Scope { s.Buckets = 4711; return s },
			[]string{"16", "4711"}},
		{"extractor", func(s dedup.Scope) dedup.Scope { s.Extractor = "key"; return s },
			[]string{"header:message-id", "key"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			scope := newScope()
			s.register(t, scope)
			err := s.Register(t.Context(), row.scope(scope))
			if !errors.Is(err, dedup.ErrScopeMismatch) {
				t.Fatalf("Register with other %s: %v, want ErrScopeMismatch", row.name, err)
			}
			for _, value := range row.both {
				if !strings.Contains(err.Error(), value) {
					t.Errorf("error %q does not name %q", err, value)
				}
			}
			s.register(t, scope)
		})
	}
}

func registerOtherTTL(t *testing.T, s *subject) {
	scope := newScope()
	s.register(t, scope)
	scope.TTL *= 2
	s.register(t, scope)
}

func registerAtOnce(t *testing.T, s *subject) {
	scope := newScope()
	var (
		errs [8]error
		wg   sync.WaitGroup
	)
	for i := range errs {
		wg.Go(func() {
			mine := scope
			mine.Buckets = 16 + i%2
			errs[i] = s.Register(t.Context(), mine)
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil && !errors.Is(err, dedup.ErrScopeMismatch) {
			t.Fatalf("Register: %v", err)
		}
		if (err == nil) != (errs[i%2] == nil) {
			t.Fatalf("equal settings, different results: %v and %v", errs[i%2], err)
		}
	}
	if (errs[0] == nil) == (errs[1] == nil) {
		t.Fatalf("different settings, equal results: %v and %v", errs[0], errs[1])
	}
}

func (s *subject) wantRegistered(
	t *testing.T, asked dedup.Scope, want dedup.Scope, wantFound bool,
) {
	t.Helper()
	got, found, err := s.Registered(t.Context(), asked)
	if err != nil || found != wantFound {
		t.Fatalf("Registered = found %v, error %v, want found %v", found, err, wantFound)
	}
	if found && (got.Buckets != want.Buckets || got.Extractor != want.Extractor) {
		t.Fatalf("Registered = %+v, want the settings of %+v", got, want)
	}
}

// registeredTells asks with other settings, which must not matter, and after a refusal.
func registeredTells(t *testing.T, s *subject) {
	scope := newScope()
	s.register(t, scope)
	other := scope
	other.Buckets, other.Extractor, other.TTL = 4711, "key", briefly
	s.wantRegistered(t, other, scope, true)
	if err := s.Register(t.Context(), other); !errors.Is(err, dedup.ErrScopeMismatch) {
		t.Fatalf("Register with other settings: %v, want ErrScopeMismatch", err)
	}
	s.wantRegistered(t, scope, scope, true)
}

// registeredChangesNothing also claims, because a store may then make a record of the scope.
func registeredChangesNothing(t *testing.T, s *subject) {
	scope := newScope()
	s.wantRegistered(t, scope, dedup.Scope{}, false)
	if _, err := s.Store.Claim(t.Context(), scope, claimsOf(1, 1)); err != nil {
		t.Fatalf("Claim: %v", err)
	}
	s.wantRegistered(t, scope, dedup.Scope{}, false)
	other := scope
	other.Buckets = 4711
	s.register(t, other)
	s.wantRegistered(t, scope, other, true)
}

// amendScope asks the stores that can do it.
func amendScope(t *testing.T, s *subject) {
	store, can := s.Store.(dedup.Amender)
	if !can {
		return
	}
	wantClaims := func(registered dedup.Scope, want bool) {
		t.Helper()
		if has, err := store.HasClaims(t.Context(), registered); err != nil || has != want {
			t.Fatalf("HasClaims = %t, %v, want %t", has, err, want)
		}
	}
	scope, neighbour := newScope(), newScope()
	s.register(t, scope)
	s.claim(t, neighbour, claimsOf(100, 0)...)
	wantClaims(scope, false)
	amended := scope
	amended.Extractor, amended.Buckets = "key", 4
	if err := store.Amend(t.Context(), scope, amended); err != nil {
		t.Fatalf("Amend: %v", err)
	}
	s.wantRegistered(t, scope, amended, true)
	s.register(t, amended)
	if err := s.Register(t.Context(), scope); !errors.Is(err, dedup.ErrScopeMismatch) {
		t.Fatalf("Register with the settings of before: %v, want ErrScopeMismatch", err)
	}
	c := claimOf("order-1", 1)
	s.wantApplied(t, s.claim(t, amended, c)[0], c)
	wantClaims(amended, true)
	s.release(t, amended, "order-1")
	if reopen := s.features.Reopen; reopen != nil {
		s.claim(t, amended, c)
		s.Store = reopen(t, s.Store)
		s.wantRegistered(t, scope, amended, true)
		store = s.Store.(dedup.Amender)
		wantClaims(amended, true)
	}
}

func forgottenScope(t *testing.T, s *subject) {
	scope, neighbour := newScope(), newScope()
	for _, used := range []dedup.Scope{scope, neighbour} {
		s.register(t, used)
		s.claim(t, used, claimsOf(100, 0)...)
	}
	for range 2 { // forgetting what is forgotten does nothing
		if err := s.Forget(t.Context(), scope); err != nil {
			t.Fatalf("Forget: %v", err)
		}
	}
	s.wantRegistered(t, scope, dedup.Scope{}, false)
	other := scope
	other.Extractor = "key"
	s.register(t, other)
	for i, a := range s.claim(t, other, claimsOf(100, 100)...) {
		s.wantApplied(t, a, claimsOf(100, 100)[i])
	}
	for i, a := range s.claim(t, neighbour, claimsOf(100, 100)...) {
		wantExists(t, a, claimsOf(100, 0)[i])
	}
}
