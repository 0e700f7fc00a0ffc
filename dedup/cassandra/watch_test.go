package cassandra_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/cassandra"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/cqltest"
)

// A cluster grows by a data centre while kdedup runs.
func TestClaimsWaitWhileDataCentresWouldDecideApart(t *testing.T) {
	server := cqltest.Start(t, cqltest.Dialect{})
	options := optionsFor(t, server.Addr())
	create(t, options)
	store := open(t, options)
	defer store.Close()
	store.WatchEvery(10 * time.Millisecond)
	session, err := cassandra.Connect(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	session.WatchEvery(10 * time.Millisecond)
	scope := dedup.Scope{ConsumerGroup: "g", Name: "t", TTL: time.Hour, Buckets: 1,
		Extractor: "key"}
	claim := func() error {
		_, err := store.Claim(t.Context(), scope, []dedup.Claim{{ID: "id"}})
		return err
	}
	if err := claim(); err != nil {
		t.Fatal(err)
	}
	const want = "the cluster has the data centres dc1, dc2"
	server.AddPeers("dc2")
	testkit.Eventually(t, time.Minute, "claims that wait", func() bool {
		return strings.Contains(errorText(claim()), want)
	})
	if _, err := store.Lookup(t.Context(), scope, "id"); !strings.Contains(errorText(err), want) {
		t.Errorf("a look-up, which readiness asks for: %v", err)
	}
	testkit.Eventually(t, time.Minute, "a claim log that waits", func() bool {
		return strings.Contains(errorText(session.Fit()), want)
	})
	server.RemovePeers()
	testkit.Eventually(t, time.Minute, "claims again", func() bool {
		return claim() == nil && session.Fit() == nil
	})
}
