package claimlog

import (
	"context"
	"maps"
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
	// the processes that share the shards, if they do
	Keepers []Keeper
}

// Keeper is a process that shares the shards of a log with others.
type Keeper struct {
	Instance, Address string
	Self              bool  // it is this process
	Keeps             bool  // or it only asks
	Reached           bool  // it answers this process; not known of one that only asks
	Shards            []int // for which it answers
}

// Await returns when the log of a scope has been read up to its end, however long that takes. Calls
// wait for it, too, but not for longer than Options.Wait.
func (s *Store) Await(ctx context.Context, scope dedup.Scope) error {
	log, err := s.groupLog(scope)
	if err != nil {
		return err
	}
	return log.await(ctx)
}

// Use begins to keep a part of the log of a scope, and to answer others for it, as the first call
// about the scope does.
func (s *Store) Use(scope dedup.Scope) error {
	_, err := s.groupLog(scope)
	return err
}

// States tells of the logs in use, by group.
func (s *Store) States() (states []State) {
	s.mu.Lock()
	logs := slices.Collect(maps.Values(s.logs))
	s.mu.Unlock()
	for _, log := range logs {
		states = append(states, log.state())
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
