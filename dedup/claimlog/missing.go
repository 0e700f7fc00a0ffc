package claimlog

import (
	"context"
	"errors"
	"fmt"
)

// await returns when each shard has a keeper that answers.
func (s *sharing) await(ctx context.Context) error {
	for {
		s.mu.Lock()
		err, changed := s.missingLocked(), s.changed
		s.mu.Unlock()
		if err == nil || errors.Is(err, errClosed) {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", err, context.Cause(ctx))
		}
	}
}

// missingLocked says which shards nobody answers for.
func (s *sharing) missingLocked() error {
	if s.why != nil {
		return s.why
	}
	if !s.joined {
		return errors.New("this process is joining the keepers of the claim log")
	}
	var missing []int
	for shard := range s.agreed.Shards {
		if s.targetLocked(shard, nil) == nil {
			missing = append(missing, shard)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	shard := missing[0]
	text := fmt.Sprintf("nobody keeps shard %d of the claim log now (%d of %d)", shard, len(missing),
		s.agreed.Shards)
	if len(s.plan[shard]) == 0 {
		return fmt.Errorf("%s: all processes ask, and none keeps; set store.keepers.keep to shared "+
			"in one of them", text)
	}
	text += ": " + s.plan[shard][0].Instance + " is to"
	if space := s.local[shard]; space != nil {
		if why := space.hindrance(); why != nil {
			return fmt.Errorf("%s; this process cannot read it: %w", text, why)
		}
	}
	return errors.New(text)
}

// hindrance is why the space is not read now.
func (s *space) hindrance() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reading != nil {
		return nil
	}
	return s.why
}
