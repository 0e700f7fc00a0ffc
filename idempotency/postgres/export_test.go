package postgres

import (
	"time"

	"github.com/kdedup/kdedup/internal/steadyclock"
)

// SetClock lets the sweep look at another clock than the system's.
func (s *Store) SetClock(wall func() time.Time) {
	s.clock = steadyclock.New(steadyclock.Options{Wall: wall})
}
