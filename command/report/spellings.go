package report

import (
	"strings"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
)

const mostSpelled = 50_000 // IDs of a sample

// spellings finds IDs that differ only in what message_id.normalize takes away.
type spellings struct {
	ids     idSample[dedup.ID] // by its normal spelling, the first that came
	several map[dedup.ID]bool
}

func newSpellings() *spellings {
	return &spellings{ids: newIDSample[dedup.ID](mostSpelled), several: make(map[dedup.ID]bool)}
}

func (s *spellings) add(id dedup.ID) {
	normal := messageid.Respelled(id)
	if !s.ids.has(normal) {
		return
	}
	first, known := s.ids.kept[normal]
	switch {
	case !known:
		s.ids.put(normal, dedup.ID(strings.Clone(string(id))))
	case first != id:
		s.several[dedup.ID(strings.Clone(string(normal)))] = true
	}
}

// found is what the report has of it.
func (s *spellings) found() Spellings {
	found := Spellings{Sampled: int64(len(s.ids.kept)), Share: s.ids.share()}
	for normal := range s.several {
		if s.ids.has(normal) {
			found.Several++
		}
	}
	return found
}
