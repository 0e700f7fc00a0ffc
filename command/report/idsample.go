package report

import (
	"hash/fnv"
	"strings"

	"github.com/kdedup/kdedup/dedup"
)

// idSample is a part of the IDs that is chosen by their hash: either all records of an ID are in it
// or none is. It becomes a smaller part whenever it has more than there is room for.
type idSample[Kept any] struct {
	most int
	mask uint64 // an ID whose hash has none of these bits is in it
	kept map[dedup.ID]Kept
}

func newIDSample[Kept any](most int) idSample[Kept] {
	return idSample[Kept]{most: most, kept: make(map[dedup.ID]Kept)}
}

func (s *idSample[Kept]) has(id dedup.ID) bool { return hashOf(id)&s.mask == 0 }

// put keeps something of an ID that is in the sample.
func (s *idSample[Kept]) put(id dedup.ID, kept Kept) {
	s.kept[dedup.ID(strings.Clone(string(id)))] = kept // the record's memory goes
	for len(s.kept) > s.most {
		s.thin()
	}
}

// thin leaves about half.
func (s *idSample[Kept]) thin() {
	s.mask = s.mask<<1 | 1
	for id := range s.kept {
		if !s.has(id) {
			delete(s.kept, id)
		}
	}
}

// share is which part of the IDs it has.
func (s *idSample[Kept]) share() float64 { return 1 / float64(s.mask+1) }

func hashOf(id dedup.ID) uint64 {
	h := fnv.New64a()
	h.Write([]byte(id))
	// FNV mixes its low bits least
	sum := h.Sum64()
	return sum ^ sum>>32
}
