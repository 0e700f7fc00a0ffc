// Package logtest has what the tests of all claim logs share: the suite of a store on such a log,
// for one process and for two, and claims that are insisted on.
package logtest

import (
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/claimlog"
	"github.com/kdedup/kdedup/dedup/storetest"
)

// Patience is how long a call may take.
const Patience = 30 * time.Second

// Conformance runs the suite of package storetest on logs, which the caller closes.
func Conformance(t *testing.T, logs claimlog.Opener) {
	storetest.Run(t, func(t *testing.T) dedup.Store {
		return Open(t, claimlog.Options{Opener: logs, Path: t.TempDir(), Wait: Patience})
	}, storetest.Features{
		ExpiryGranularity: time.Second,
		Reopen: func(t *testing.T, _ dedup.Store) dedup.Store {
			return Open(t, claimlog.Options{Opener: logs, Wait: Patience})
		},
	})
}

// OfSeveralProcesses is Conformance of two processes in turn: each has an index of its own, and all
// answer alike.
func OfSeveralProcesses(t *testing.T, one, two claimlog.Opener) {
	storetest.Run(t, func(t *testing.T) dedup.Store {
		return storetest.InTurn(
			Open(t, claimlog.Options{Opener: one, Wait: Patience}),
			Open(t, claimlog.Options{Opener: two, Wait: Patience, Path: t.TempDir()}),
		)
	}, storetest.Features{ExpiryGranularity: time.Second})
}

// Open closes the store when the test ends.
func Open(t *testing.T, o claimlog.Options) *claimlog.Store {
	t.Helper()
	s := claimlog.Open(o)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// ClaimOf is by the record at an offset.
func ClaimOf(id string, offset int64) dedup.Claim {
	return dedup.Claim{ID: dedup.ID(id),
		Owner: dedup.Coordinates{TopicID: [16]byte{1}, Offset: offset}}
}

// MustClaim claims one ID until it is decided, as a lane does.
func MustClaim(t *testing.T, s *claimlog.Store, scope dedup.Scope, c dedup.Claim) dedup.Answer {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		answers, err := s.Claim(t.Context(), scope, []dedup.Claim{c})
		if answers[0].Outcome != dedup.Undecided {
			return answers[0]
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// WantOwner wants the record at an offset to own the ID.
func WantOwner(t *testing.T, got dedup.Answer, offset int64) {
	t.Helper()
	if got.Owner.Offset != offset {
		t.Fatalf("answer %+v, want the owner at %d", got, offset)
	}
}
