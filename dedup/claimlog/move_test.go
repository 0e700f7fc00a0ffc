package claimlog

import (
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

// A log that keeps each block for as long as it is told (Cassandra) keeps an imported claim until
// it ends, whatever the ttl of the configuration is by now.
func TestAnImportedClaimIsKeptUntilItEnds(t *testing.T) {
	logs := newFakeLogs(1)
	logs.keeps = true
	now := time.Now()
	logs.now = func() time.Time { return now }
	s := open(t, Options{Opener: logs, Wait: 5 * time.Second})
	mustClaim(t, s, claimOf("first", 1))
	c := claimOf("a", 2)
	ends := time.Now().Add(24 * time.Hour) // of a store with a ttl of a day; testScope has an hour
	answers, err := s.Import(t.Context(), testScope, []dedup.Standing{{ID: c.ID, Owner: c.Owner,
		Fingerprint: c.Fingerprint, ClaimedAt: time.Now(), Ends: ends}})
	if err != nil {
		t.Fatal(err)
	}
	wantOwner(t, answers[0], dedup.Applied, 2)
	now = now.Add(testScope.TTL + Margin + time.Minute)
	mustClaim(t, s, claimOf("z", 3)) // the log's time goes on
	gone := 0
	for _, e := range logs.entries(testScope.ConsumerGroup)[0] {
		if e.Ends <= now.UnixMilli() {
			gone++
		}
	}
	logs.retire(testScope.ConsumerGroup, 0, gone) // Cassandra has dropped these rows
	wantOwner(t, mustClaim(t, s, claimOf("a", 4)), dedup.Exists, 2)
	again := open(t, Options{Opener: logs, Wait: 5 * time.Second})
	wantOwner(t, mustClaim(t, again, claimOf("a", 5)), dedup.Exists, 2)
}
