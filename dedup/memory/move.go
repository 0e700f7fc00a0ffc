package memory

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

var _ dedup.Mover = (*Store)(nil)

// Export implements dedup.Exporter.
func (s *Store) Export(
	ctx context.Context, scope dedup.Scope, page func([]dedup.Standing) error,
) error {
	standing, err := s.standing(ctx, scope)
	for err == nil && len(standing) > 0 {
		n := min(len(standing), dedup.StandingPage)
		if err = context.Cause(ctx); err == nil {
			err = page(standing[:n])
		}
		standing = standing[n:]
	}
	if err != nil {
		return fmt.Errorf("export claims: %w", err)
	}
	return nil
}

func (s *Store) standing(
	ctx context.Context, scope dedup.Scope,
) (standing []dedup.Standing, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usableLocked(ctx, scope); err != nil {
		return nil, err
	}
	now := s.millis()
	for id, owner := range s.spaceLocked(scope).claims {
		if now.Before(owner.expires) {
			standing = append(standing, owner.standing(id))
		}
	}
	return standing, nil
}

func (h held) standing(id dedup.ID) dedup.Standing {
	return dedup.Standing{ID: id, Owner: h.answer.Owner, Fingerprint: h.answer.Fingerprint,
		ClaimedAt: h.answer.ClaimedAt, Ends: h.expires}
}

// Find implements dedup.Exporter.
func (s *Store) Find(
	ctx context.Context, scope dedup.Scope, ids []dedup.ID,
) (found []dedup.Standing, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usableLocked(ctx, scope); err != nil {
		return nil, fmt.Errorf("find %d claims: %w", len(ids), err)
	}
	now, space := s.millis(), s.spaceLocked(scope)
	for _, id := range ids {
		if owner, ok := space.claims[id]; ok && now.Before(owner.expires) {
			found = append(found, owner.standing(id))
		}
	}
	return found, nil
}

// Import implements dedup.Importer. Faults fare with it as with Claim.
func (s *Store) Import(
	ctx context.Context, scope dedup.Scope, claims []dedup.Standing,
) ([]dedup.Answer, error) {
	asked := make([]dedup.Claim, len(claims))
	for i := range claims {
		asked[i] = dedup.Claim{ID: claims[i].ID, Owner: claims[i].Owner,
			Fingerprint: claims[i].Fingerprint}
	}
	fault := s.faults(asked)
	answers := make([]dedup.Answer, len(claims))
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usableLocked(ctx, scope); err != nil {
		return answers, fmt.Errorf("import %d claims: %w", len(claims), err)
	}
	s.checkClaimsLocked(scope, asked)
	space, now := s.spaceLocked(scope), s.millis()
	err := fault.decide(answers, func(i int) dedup.Answer { return space.take(&claims[i], now) })
	if err != nil {
		return answers, fmt.Errorf("import %d claims, %w", len(claims), err)
	}
	return answers, nil
}

// take decides one claim of another store.
func (n *namespace) take(c *dedup.Standing, now time.Time) dedup.Answer {
	if owner, ok := n.claims[c.ID]; ok && now.Before(owner.expires) {
		return owner.answer
	}
	if !now.Before(c.Ends) {
		return dedup.Answer{}
	}
	answer := c.Answer()
	n.claims[dedup.ID(strings.Clone(string(c.ID)))] = held{answer: answer, expires: c.Ends}
	answer.Outcome = dedup.Applied
	return answer
}
