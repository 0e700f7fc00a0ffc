package claimlog

import (
	"context"
	"slices"
	"strings"

	"github.com/kdedup/kdedup/dedup"
)

// State tells how a log is read.
type State struct {
	Group string
	// AtEnd: all was read that the log had when reading began. What came since then is soon read.
	AtEnd    bool
	Left, Of int64 // blocks that are still to be read until then, and how many there were
	Bytes    int64 // of the index, on disk
	Claims   int   // in the index, with the few notes that it keeps beside them
	Err      error // why the log is not read now; nil while it is
}

// Await returns when the log of a scope has been read up to its end, however long that takes. Calls
// wait for it, too, but not for longer than Options.Wait.
func (s *Store) Await(ctx context.Context, scope dedup.Scope) error {
	space, err := s.space(scope)
	if err != nil {
		return err
	}
	_, err = space.current(ctx)
	return err
}

// States tells of the logs in use, by group.
func (s *Store) States() (states []State) {
	s.mu.Lock()
	spaces := make([]*space, 0, len(s.spaces))
	for _, space := range s.spaces {
		spaces = append(spaces, space)
	}
	s.mu.Unlock()
	for _, space := range spaces {
		states = append(states, space.state())
	}
	slices.SortFunc(states, func(a, b State) int { return strings.Compare(a.Group, b.Group) })
	return states
}

func (s *space) state() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := State{Group: s.group}
	r := s.reading
	if r == nil {
		state.Err = s.why
		return state
	}
	state.AtEnd, state.Left, state.Of = r.ends == nil, r.left(), r.blocks
	state.Claims, state.Bytes = r.machine.index.size()
	return state
}

// Facts are for the status page.
func (s *Store) Facts() []dedup.Fact {
	var unread, size, claims float64
	for _, state := range s.States() {
		unread += float64(state.Left)
		size += float64(state.Bytes)
		claims += float64(state.Claims)
	}
	return []dedup.Fact{{Name: "blocks_unread", Value: unread, Unit: "count"},
		{Name: dedup.FactDisk, Value: size, Unit: "bytes"},
		{Name: dedup.FactClaims, Value: claims, Unit: "count"}}
}
