package claimlog

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

// aheadLogs are logs whose brokers' clock can be set. That of the process is right all the time,
// unless it is one with the brokers'.
func aheadLogs(shards int) (*fakeLogs, *atomic.Int64) {
	ahead := new(atomic.Int64)
	logs := newFakeLogs(shards)
	logs.now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	return logs, ahead
}

// clocks are those of a process beside a broker whose clock is wrong.
func clocks(logs *fakeLogs) map[string]func() time.Time {
	return map[string]func() time.Time{"right": time.Now, "as wrong": logs.now}
}

// Once the clock is right, claims hold again that had ended by the wrong time only.
func TestABrokerWhoseClockIsAheadEndsNoClaimForGood(t *testing.T) {
	for name := range clocks(newFakeLogs(1)) {
		t.Run(name, func(t *testing.T) {
			logs, ahead := aheadLogs(1)
			s := open(t, Options{Opener: logs, Wait: 5 * time.Second, now: clocks(logs)[name]})
			wantOwner(t, mustClaim(t, s, claimOf("a", 1)), dedup.Applied, 1)
			ahead.Store(int64(2 * time.Hour)) // the ttl is one hour
			mustClaim(t, s, claimOf("other", 2))
			if name == "right" {
				wantOwner(t, mustClaim(t, s, claimOf("a", 3)), dedup.Exists, 1)
			}
			ahead.Store(0)
			wantOwner(t, mustClaim(t, s, claimOf("a", 4)), dedup.Exists, 1)
		})
	}
}

func TestClaimsEndInTimeAfterABrokerWhoseClockWasAhead(t *testing.T) {
	for name := range clocks(newFakeLogs(1)) {
		t.Run(name, func(t *testing.T) {
			logs, ahead := aheadLogs(1)
			s := open(t, Options{Opener: logs, Wait: 5 * time.Second, now: clocks(logs)[name]})
			ahead.Store(int64(365 * 24 * time.Hour)) // for one block
			mustClaim(t, s, claimOf("other", 1))
			ahead.Store(0)
			wantOwner(t, mustClaim(t, s, claimOf("a", 2)), dedup.Applied, 2)
			if name == "right" {
				return // and cannot be set two hours on
			}
			ahead.Store(int64(2 * time.Hour))
			wantOwner(t, mustClaim(t, s, claimOf("a", 3)), dedup.Applied, 3)
		})
	}
}

// A claim that is made while the broker's clock is behind would end early once the clock is right.
func TestABrokerWhoseClockIsBehindEndsNoClaimEarly(t *testing.T) {
	logs, ahead := aheadLogs(1)
	s := open(t, Options{Opener: logs, Wait: 5 * time.Second, now: time.Now})
	ahead.Store(-int64(2 * time.Hour)) // the ttl is one hour
	wantOwner(t, mustClaim(t, s, claimOf("a", 1)), dedup.Applied, 1)
	ahead.Store(0)
	wantOwner(t, mustClaim(t, s, claimOf("a", 2)), dedup.Exists, 1)
}

// A process whose clock is far behind that of the log cannot tell when its claims end.
func TestAProcessWhoseClockIsBehindSaysWhyItWaits(t *testing.T) {
	logs, _ := aheadLogs(1)
	wrong := func() time.Time { return time.Now().Add(-2 * time.Hour) }
	s := open(t, Options{Opener: logs, Wait: 5 * time.Second, now: wrong})
	_, err := s.Claim(t.Context(), testScope, []dedup.Claim{claimOf("a", 1)})
	if !errors.Is(err, errSkew) {
		t.Fatal(err)
	}
	healthy := open(t, Options{Opener: logs, Wait: 5 * time.Second})
	wantOwner(t, mustClaim(t, healthy, claimOf("a", 2)), dedup.Applied, 2)
	wantOwner(t, mustClaim(t, s, claimOf("a", 3)), dedup.Exists, 2)
}

// A machine whose clock is ahead by the ttl would say that nobody has claimed the ID, while every
// copy is dropped.
func TestALookUpGoesByTheClockOfTheLog(t *testing.T) {
	logs := newFakeLogs(1)
	ahead := func() time.Time { return time.Now().Add(2 * time.Hour) } // the ttl is one hour
	healthy := open(t, Options{Opener: logs, Wait: 5 * time.Second})
	wantOwner(t, mustClaim(t, healthy, claimOf("a", 1)), dedup.Applied, 1)
	asks := open(t, Options{Opener: logs, Wait: 5 * time.Second, now: ahead})
	for _, when := range []string{"before it wrote a block", "behind one"} {
		answer, err := asks.Lookup(t.Context(), testScope, "a")
		if err != nil {
			t.Fatal(err)
		}
		t.Log(when)
		wantOwner(t, answer, dedup.Exists, 1)
	}
	wantOwner(t, mustClaim(t, asks, claimOf("a", 2)), dedup.Exists, 1)
}
