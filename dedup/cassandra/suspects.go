package cassandra

import (
	"sync"

	"github.com/kdedup/kdedup/internal/hashlog/bloom"
)

// suspects remembers the IDs that this process lately saw decided, in two Bloom filters: when the
// young one is full it becomes the old one. A suspect is most likely owned by somebody. It is read
// before it is claimed, because a single existing row spoils the whole batch of its bucket. No
// verdict rests on it: a false suspicion costs one row of a read, and a forgotten ID one refused
// batch.
type suspects struct {
	mu         sync.Mutex
	young, old bloom.Filter
	size, room int // IDs that young takes, and takes still
}

// A scope begins small and remembers two to four million IDs in the end, in 8 MiB.
const (
	leastSuspects = 1 << 16
	mostSuspects  = 1 << 21
	suspectBits   = 16 // of the filter, for each ID: one in 1,100 others is suspect
)

// split parts the suspects from the others.
func (s *suspects) split(hashes []uint64, open []int32) (suspects, others []int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	others = make([]int32, 0, len(open))
	for _, i := range open {
		if h := hashes[i]; s.young.Has(h) || s.old.Has(h) {
			suspects = append(suspects, i)
		} else {
			others = append(others, i)
		}
	}
	return suspects, others
}

// note adds IDs that are owned now.
func (s *suspects) note(hashes []uint64, decided []int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range decided {
		if s.room == 0 {
			s.turn()
		}
		s.young.Add(hashes[i])
		s.room--
	}
}

// turn begins a new filter, twice as large as the last one.
func (s *suspects) turn() {
	s.size = min(max(2*s.size, leastSuspects), mostSuspects)
	s.old, s.young, s.room = s.young, bloom.New(s.size, suspectBits), s.size
}
