package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

var (
	// ErrInjected is the error of a fault that has none of its own.
	ErrInjected = errors.New("injected fault")
	// ErrClosed is returned by every method after Close, if Options.Violation returns.
	ErrClosed = errors.New("memory store is closed")
)

// Options may all be left zero.
type Options struct {
	// Now is the clock for claimed_at and expiry. Nil means time.Now. The store may call it with
	// its lock held.
	Now func() time.Time
	// Faults decides how each call of Claim fares. Nil means that none fails.
	Faults Faults
	// Violation is told of calls that the contract forbids: equal or empty IDs in one call, a TTL
	// that is not whole seconds, use after Close. t.Errorf fits. Nil panics.
	Violation func(format string, args ...any)
}

// Store is a dedup.Store in memory.
type Store struct {
	now       func() time.Time
	faults    Faults
	violation func(format string, args ...any)

	mu     sync.Mutex
	closed bool
	scopes map[scopeName]*namespace
	seen   map[dedup.ID]struct{} // the IDs of the call that holds mu
}

var _ dedup.Store = (*Store)(nil)

type scopeName struct{ group, name string }

// namespace is what the store knows of one scope.
type namespace struct {
	registered *dedup.Scope // nil before Register
	claims     map[dedup.ID]held
}

// held is a claim that stands until it expires.
type held struct {
	answer  dedup.Answer // Outcome is Exists
	expires time.Time
}

// New returns an empty store.
func New(options Options) *Store {
	s := &Store{
		now: options.Now, faults: options.Faults, violation: options.Violation,
		scopes: make(map[scopeName]*namespace), seen: make(map[dedup.ID]struct{}),
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.faults == nil {
		s.faults = func([]dedup.Claim) Fault { return Fault{} }
	}
	if s.violation == nil {
		s.violation = func(format string, args ...any) {
			panic("memory store: " + fmt.Sprintf(format, args...))
		}
	}
	return s
}

// Register implements dedup.Store.
func (s *Store) Register(ctx context.Context, scope dedup.Scope) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usableLocked(ctx, scope); err != nil {
		return fmt.Errorf("register scope: %w", err)
	}
	space := s.spaceLocked(scope)
	if space.registered == nil {
		space.registered = &scope
		return nil
	}
	return dedup.CompareScopes(scope, *space.registered)
}

// Registered implements dedup.Store.
func (s *Store) Registered(
	ctx context.Context, scope dedup.Scope,
) (registered dedup.Scope, found bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usableLocked(ctx, scope); err != nil {
		return dedup.Scope{}, false, fmt.Errorf("read scope: %w", err)
	}
	if space, ok := s.scopes[scopeName{scope.ConsumerGroup, scope.Name}]; ok &&
		space.registered != nil {
		return *space.registered, true, nil
	}
	return dedup.Scope{}, false, nil
}

// Claim implements dedup.Store.
func (s *Store) Claim(
	ctx context.Context, scope dedup.Scope, claims []dedup.Claim,
) ([]dedup.Answer, error) {
	fault := s.faults(claims)
	answers := make([]dedup.Answer, len(claims))
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usableLocked(ctx, scope); err != nil {
		return answers, fmt.Errorf("claim %d ids: %w", len(claims), err)
	}
	s.checkClaimsLocked(scope, claims)
	space, now := s.spaceLocked(scope), s.millis()
	claimedAt := dedup.ClaimTime(claims, now)
	err := fault.decide(answers, func(i int) dedup.Answer {
		return space.claim(&claims[i], now, claimedAt, scope)
	})
	if err != nil {
		return answers, fmt.Errorf("claim %d ids, %w", len(claims), err)
	}
	return answers, nil
}

// decide fills in the answers as the fault lets them. The error counts those that it swallows.
func (f Fault) decide(answers []dedup.Answer, decide func(i int) dedup.Answer) error {
	undecided := 0
	for i := range answers {
		effect := Answered
		if f.Effect != nil {
			effect = f.Effect(i)
		}
		if effect != NotApplied {
			answers[i] = decide(i)
		}
		if effect != Answered {
			answers[i] = dedup.Answer{}
			undecided++
		}
	}
	if undecided == 0 {
		return nil
	}
	return fmt.Errorf("%d undecided: %w", undecided, cmp.Or(f.Err, ErrInjected))
}

// Lookup implements dedup.Store.
func (s *Store) Lookup(ctx context.Context, scope dedup.Scope, id dedup.ID) (dedup.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usableLocked(ctx, scope); err != nil {
		return dedup.Answer{}, fmt.Errorf("look up an id: %w", err)
	}
	owner, ok := s.spaceLocked(scope).claims[id]
	if !ok || !s.millis().Before(owner.expires) {
		return dedup.Answer{}, nil
	}
	return owner.answer, nil
}

// Release implements dedup.Store.
func (s *Store) Release(ctx context.Context, scope dedup.Scope, id dedup.ID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usableLocked(ctx, scope); err != nil {
		return fmt.Errorf("release an id: %w", err)
	}
	delete(s.spaceLocked(scope).claims, id)
	return nil
}

// Forget implements dedup.Store.
func (s *Store) Forget(ctx context.Context, scope dedup.Scope) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usableLocked(ctx, scope); err != nil {
		return fmt.Errorf("forget scope: %w", err)
	}
	delete(s.scopes, scopeName{scope.ConsumerGroup, scope.Name})
	return nil
}

// Close implements dedup.Store.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		s.violation("closed twice")
	}
	s.closed = true
	return nil
}

// claim decides one claim.
func (n *namespace) claim(
	c *dedup.Claim, now, claimedAt time.Time, scope dedup.Scope,
) dedup.Answer {
	if owner, ok := n.claims[c.ID]; ok && now.Before(owner.expires) {
		if c.Renews(scope, owner.answer.Owner) && owner.expires.Sub(now) <= scope.DueAt() {
			owner.expires = now.Add(scope.TTL)
			n.claims[dedup.ID(strings.Clone(string(c.ID)))] = owner
		}
		return owner.answer
	}
	answer := dedup.Answer{Outcome: dedup.Exists, Owner: c.Owner, Fingerprint: c.Fingerprint,
		ClaimedAt: claimedAt}
	// The ID may share memory with a whole batch of records.
	n.claims[dedup.ID(strings.Clone(string(c.ID)))] = held{answer: answer,
		expires: now.Add(scope.TTL)}
	answer.Outcome = dedup.Applied
	return answer
}

// millis is the clock as far as an answer can tell it.
func (s *Store) millis() time.Time {
	return time.UnixMilli(s.now().UnixMilli())
}

func (s *Store) spaceLocked(scope dedup.Scope) *namespace {
	name := scopeName{scope.ConsumerGroup, scope.Name}
	space, ok := s.scopes[name]
	if !ok {
		space = &namespace{claims: make(map[dedup.ID]held)}
		s.scopes[name] = space
	}
	return space
}

func (s *Store) usableLocked(ctx context.Context, scope dedup.Scope) error {
	if s.closed {
		s.violation("scope %s/%s is used after Close", scope.ConsumerGroup, scope.Name)
		return ErrClosed
	}
	return ctx.Err()
}

func (s *Store) checkClaimsLocked(scope dedup.Scope, claims []dedup.Claim) {
	if scope.TTL < time.Second || scope.TTL%time.Second != 0 {
		s.violation("scope %s/%s has a ttl of %v, not whole seconds", scope.ConsumerGroup,
			scope.Name, scope.TTL)
	}
	clear(s.seen)
	for i := range claims {
		if claims[i].ID == "" {
			s.violation("claim %d of %d has an empty id", i, len(claims))
		}
		if _, twice := s.seen[claims[i].ID]; twice {
			s.violation("id %.80q is claimed twice in one call", claims[i].ID)
		}
		s.seen[claims[i].ID] = struct{}{}
	}
	clear(s.seen)
}
