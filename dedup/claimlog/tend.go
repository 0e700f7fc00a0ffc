package claimlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kdedup/kdedup/internal/steadyclock"
)

// tend saves the index, and drops what has ended from it, until ctx ends.
func (s *space) tend(ctx context.Context, clock *steadyclock.Clock, r *reading) error {
	save, drop := time.NewTicker(s.times.save), time.NewTicker(s.times.drop)
	defer save.Stop()
	defer drop.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-save.C:
			if err := s.stuck(r); err != nil {
				return err
			}
			if _, err := s.save(ctx, r); err != nil && ctx.Err() == nil {
				return err
			}
		case <-drop.C:
			s.carryOn(r)
			if err := s.drop(ctx, clock, r); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

// noteWritersLocked begins to write blocks of the present version once all read them.
func (s *space) noteWritersLocked(r *reading) {
	if s.writing.note(r.machine, time.Now(), s.times.settle) {
		s.log.Info("no earlier version of kdedup writes to the claim log any more: from now on its "+
			"blocks are of a version that those do not read", "group", s.group)
	}
}

// drop lets go what has ended by the log's time and by this machine's clock, which must have stood
// by that: a clock that is wrong for a while forgets nothing.
func (s *space) drop(ctx context.Context, clock *steadyclock.Clock, r *reading) error {
	saved, err := s.save(ctx, r)
	if err != nil {
		return err
	}
	patience := min(milliseconds(saved.longest()), steadyclock.MostPatience)
	ended := min(saved.ended(r.machine.late), clock.Passed(patience).UnixMilli())
	return errors.Join(clock.Save(), r.machine.index.drop(ctx, ended))
}

// save makes durable what was applied so far, and then how far that is.
func (s *space) save(ctx context.Context, r *reading) (progress, error) {
	s.mu.Lock()
	s.noteWritersLocked(r)
	mark, p := r.machine.index.mark(), r.machine.progress()
	s.mu.Unlock()
	if err := r.machine.index.save(ctx, mark, p); err != nil {
		return progress{}, fmt.Errorf("save the index: %w", err)
	}
	_, bytes := r.machine.index.size()
	s.metrics.bytes.Set(float64(bytes))
	return p, nil
}

// standing notes that a block stands in the log, and is to be read.
func (s *space) standing(r *reading, p *part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending[p.id] != p {
		return
	}
	if p.stood = time.Now(); r.unread[p.shard].IsZero() {
		r.unread[p.shard] = p.stood
	}
}

// errStuck ends a reading, so that the log is opened again.
var errStuck = errors.New("blocks stand in the claim log, and its reader is not shown them")

// stuck tells whether blocks stand in the log for long, of which nothing was read.
func (s *space) stuck(r *reading) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for shard, since := range r.unread {
		if !since.IsZero() && time.Since(since) >= s.times.stuck {
			return fmt.Errorf("%w (shard %d, for %v)", errStuck, shard, s.times.stuck)
		}
	}
	return nil
}
