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
}

func scopesAreNamespaces(t *testing.T, s *subject) {
	scope := newScope()
	otherGroup, otherName := scope, scope
	otherGroup.ConsumerGroup += "2"
	otherName.Name += "2"
	scopes := []dedup.Scope{scope, otherGroup, otherName}
	for n, scope := range scopes {
		c := claimOf("order-1", n)
		wantApplied(t, s.claim(t, scope, c)[0], c)
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
		{"a", "b", "cd"}, {"ab", "", "cd"}, {"a", "bc", "d"}, {"ab", "c", "d"}, {"a/b", "c", "d"}, {"a", "b/c", "d"}, {"a:b", "c", "d"}, {"a", "b:c", "d"},
	} {
		scope := base
		scope.ConsumerGroup += row.group
		scope.Name = row.name + "t"
		c := claimOf(row.id, n)
		wantApplied(t, s.claim(t, scope, c)[0], c)
	}
}

func (s *subject) register(t *testing.T, scope dedup.Scope) {
	t.Helper()
	if err := s.Register(t.Context(), scope); err != nil {
		t.Fatalf("Register: %v", err)
	}
}

func registerAgain(t *testing.T, s *subject) {
	scope := newScope()
	s.register(t, scope)
	s.register(t, scope)
	c := claimOf("order-1", 1)
	wantApplied(t, s.claim(t, scope, c)[0], c)
	s.register(t, scope)
}

func registerOther(t *testing.T, s *subject) {
	for _, row := range []struct {
		name  string
		scope func(dedup.Scope) dedup.Scope
		both  []string // what the error names
	}{
		{"buckets", func(s dedup.Scope) dedup.Scope { s.Buckets = 4711; return s }, []string{"16", "4711"}},
		{"extractor", func(s dedup.Scope) dedup.Scope { s.Extractor = "key"; return s }, []string{"header:message-id", "key"}},
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
