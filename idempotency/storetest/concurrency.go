package storetest

import (
	"encoding/binary"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kdedup/kdedup/idempotency"
)

var concurrencyBehaviours = []behaviour{
	{"of many first records one is stored", oneFirst},
	{"of many successors one is stored", oneSuccessor},
	{"no swap is lost", noneLost},
}

const contenders = 50

func oneFirst(t *testing.T, s *subject) {
	s.contend(t, newKey(), none)
}

func oneSuccessor(t *testing.T, s *subject) {
	key, first := newKey(), started()
	s.mustSwap(t, key, none, first, time.Hour)
	s.contend(t, key, first.Version)
}

// contend lets many swap one version and checks that all agree on the one who did.
func (s *subject) contend(t *testing.T, key idempotency.Key, old idempotency.Version) {
	t.Helper()
	var (
		group  errgroup.Group
		winner atomic.Pointer[idempotency.Record]
		stood  [contenders]idempotency.Record
	)
	for n := range contenders {
		group.Go(func() error {
			mine := started()
			mine.Revision = old.Revision + 1
			current, done, err := s.step(t.Context(), key, old, mine, time.Hour)
			if !done {
				stood[n] = current
				return err
			}
			stood[n] = mine
			if !winner.CompareAndSwap(nil, &mine) {
				t.Errorf("two swaps of one version were done")
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if winner.Load() == nil {
		t.Fatal("no swap was done")
	}
	for _, record := range stood {
		wantRecord(t, "the record that stood", record, *winner.Load())
	}
	s.wantGet(t, key, *winner.Load())
}

// noneLost counts in a record, which is a sum of what several goroutines add to it.
func noneLost(t *testing.T, s *subject) {
	const adders, each = 4, 10
	key := newKey()
	var group errgroup.Group
	for range adders {
		group.Go(func() error {
			for range each {
				if err := s.add(t, key); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if sum := binary.BigEndian.Uint64(s.get(t, key).Response); sum != adders*each {
		t.Errorf("%d swaps were done, the record knows of %d", adders*each, sum)
	}
}

func (s *subject) add(t *testing.T, key idempotency.Key) error {
	seen, err := s.Get(t.Context(), key)
	for err == nil {
		var (
			sum  = make([]byte, 8)
			done bool
			next = started() // of a new owner, who knows its own swap
		)
		copy(sum, seen.Response)
		binary.BigEndian.PutUint64(sum, binary.BigEndian.Uint64(sum)+1)
		next.Response, next.Revision = sum, seen.Revision+1
		if seen, done, err = s.step(t.Context(), key, seen.Version, next, time.Hour); done {
			return nil
		}
	}
	return err
}
