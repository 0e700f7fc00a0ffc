package idempotency

import (
	"sync"
	"time"
)

// maxSightings bounds the memory of an executor. A sighting that is dropped delays a takeover by
// one lease at most.
const maxSightings = 10_000

// sightings remember since when the records of started keys have not changed, by this process's
// clock. They outlive a call, so that callers who do not wait can take over, too.
type sightings struct {
	mu   sync.Mutex
	seen map[Key]sighting
}

type sighting struct {
	version Version
	since   time.Time
}

func newSightings() *sightings { return &sightings{seen: make(map[Key]sighting)} }

// unchanged returns for how long the version was known when it was read just now.
func (s *sightings) unchanged(key Key, version Version) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if known, ok := s.seen[key]; ok && known.version == version {
		return now.Sub(known.since)
	}
	s.makeRoomLocked(key)
	s.seen[key] = sighting{version, now}
	return 0
}

// makeRoomLocked drops any sighting when there are too many.
func (s *sightings) makeRoomLocked(key Key) {
	if _, ok := s.seen[key]; ok || len(s.seen) < maxSightings {
		return
	}
	for other := range s.seen {
		delete(s.seen, other)
		return
	}
}

func (s *sightings) forget(key Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, key)
}
