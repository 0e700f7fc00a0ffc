package chaos_test

import (
	"fmt"

	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// longBlock is how long the two lanes of a process wait together in two session timeouts.
const longBlock = 4 * sessionTimeout

// loseQuorum kills two of the three nodes while all else is well, and starts them again. Nothing
// can be claimed meanwhile: the lanes wait in their group, and go on by themselves.
func (s *storm) loseQuorum(records int) {
	s.t.Helper()
	lost := s.world.cassandra.Nodes[:2]
	s.logf("two of three nodes are killed")
	_ = each(lost, func(node *servers.Server) error { node.Kill(); return nil })
	before := make(map[string]counters)
	for _, w := range s.withLanes() {
		before[w.name] = w.counters()
	}
	s.traffic.produce(s.t.Context(), records)
	s.traffic.flush(s.t)
	s.eventually("lanes that wait for the store", func() error { return s.waited(before) })
	if left, err := s.left(); err != nil || left != int64(records) {
		s.t.Errorf("without a quorum %d of %d records are left, %v", left, records, err)
	}
	s.logf("the nodes start again")
	if err := each(lost, func(node *servers.Server) error {
		return restart(s.t.Context(), node)
	}); err != nil {
		s.t.Fatal(err)
	}
	s.waitDone()
	s.waitReady()
	s.logf("everything is committed again")
}

func (s *storm) waited(before map[string]counters) error {
	for _, w := range s.withLanes() {
		now := w.counters()
		waited := now.blocked - before[w.name].blocked
		if float64(waited) < longBlock.Seconds() || now.storeUp {
			return fmt.Errorf("%s waited for %d s, store up: %v", w.name, waited, now.storeUp)
		}
	}
	return nil
}

// withLanes are the usual processes but those that only keep.
func (s *storm) withLanes() (all []*worker) {
	for i, w := range s.workers[:usualProcesses] {
		if s.keeps[i] != keepOnly {
			all = append(all, w)
		}
	}
	return all
}
