package cassandra

import "sync"

// suspects remembers the IDs that this process lately saw decided, in two Bloom filters: when the young
// one is full it becomes the old one. A suspect is most likely owned by somebody. It is read before it is
// claimed, because a single existing row spoils the whole batch of its bucket. No verdict rests on
// it: a false suspicion costs one row of a read, and a forgotten ID one refused batch.
type suspects struct {
	mu         sync.Mutex
	young, old filter
	room       int // IDs until young is full
}

// A scope begins small and remembers two to four million IDs in the end, in 8 MiB.
const (
	leastSuspects = 1 << 16
	mostSuspects  = 1 << 21
)

// split parts the suspects from the others.
func (s *suspects) split(hashes []uint64, open []int32) (suspects, others []int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	others = make([]int32, 0, len(open))
	for _, i := range open {
		if h := hashes[i]; s.young.has(h) || s.old.has(h) {
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
		s.young.add(hashes[i])
		s.room--
	}
}

// turn begins a new filter, twice as large as the last one.
func (s *suspects) turn() {
	ids := min(max(2*s.young.capacity(), leastSuspects), mostSuspects)
	s.old, s.young, s.room = s.young, newFilter(ids), ids
}

// filter is a Bloom filter whose bits of one ID are in one block of 64 bytes, which is one access to
// memory. Full, with 16 bits for each ID, it falsely has about one ID in 300.
// Source: Putze, Sanders, Singler, Cache-, Hash- and Space-Efficient Bloom Filters (2007).
type filter []block

type block [8]uint64

const idsPerBlock = 32

func newFilter(ids int) filter { return make(filter, ids/idsPerBlock) }

func (f filter) capacity() int { return len(f) * idsPerBlock }

func (f filter) add(hash uint64) {
	b, bits := f.block(hash)
	for i := range b {
		b[i] |= 1 << (bits >> (8 * i) & 63)
	}
}

func (f filter) has(hash uint64) bool {
	if len(f) == 0 {
		return false
	}
	b, bits := f.block(hash)
	for i := range b {
		if b[i]&(1<<(bits>>(8*i)&63)) == 0 {
			return false
		}
	}
	return true
}

// block returns the ID's block, and in each byte of bits the place of one bit in one word of it. The
// low bits of the hash decide the ID's bucket, so both are taken from products that mix all of them.
func (f filter) block(hash uint64) (b *block, bits uint64) {
	place := hash * 0x9e3779b97f4a7c15 >> 32
	return &f[place%uint64(len(f))], (hash ^ hash>>32) * 0xc2b2ae3d27d4eb4f
}
