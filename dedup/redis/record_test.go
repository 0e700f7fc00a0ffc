package redis

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kdedup/kdedup/dedup"
)

func TestRecordsRoundTrip(t *testing.T) {
	claim := &dedup.Claim{
		Owner: dedup.Coordinates{TopicID: [16]byte{0: 1, 15: 0xff}, Partition: math.MaxInt32,
			Offset: math.MaxInt64, LeaderEpoch: -1},
		Fingerprint: dedup.Fingerprint{0: 9, 15: 8},
	}
	at := time.UnixMilli(1_700_000_000_123)
	got, err := parseRecord(appendRecord(nil, claim, at))
	if err != nil {
		t.Fatal(err)
	}
	want := dedup.Answer{Outcome: dedup.Exists, Owner: claim.Owner, Fingerprint: claim.Fingerprint,
		ClaimedAt: at}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// FuzzRecord: whatever a key holds, reading it ends in the answer that was written or in an error.
func FuzzRecord(f *testing.F) {
	f.Add(appendRecord(nil, &dedup.Claim{}, time.Now()))
	f.Add([]byte{})
	f.Add(append([]byte{2}, make([]byte, recordBytes-1)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := parseRecord(data)
		if err != nil {
			if a != (dedup.Answer{}) {
				t.Errorf("an error and %+v", a)
			}
			return
		}
		again := appendRecord(nil, &dedup.Claim{Owner: a.Owner, Fingerprint: a.Fingerprint},
			a.ClaimedAt)
		if string(again) != string(data) {
			t.Errorf("%x was read as %x", data, again)
		}
	})
}

// The keys are stored: a claim whose key is made differently is never found again.
func TestKeysNeverChange(t *testing.T) {
	scope := dedup.Scope{ConsumerGroup: "orders-dedup", Name: "a:b"}
	for want, got := range map[string]string{
		"kdedup:c:{}:12:orders-dedup:3:a:b:id": claimPrefix("kdedup", scope) + "id",
		"kdedup:s:{}:12:orders-dedup:3:a:b":    scopeKey("kdedup", scopeKind, scope),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestPatternsMatchNothingButTheirPrefix(t *testing.T) {
	if got, want := startingWith(`a*?[b]\c`), `a\*\?\[b\]\\c*`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestServersThatCannotKeepClaimsAreRefused(t *testing.T) {
	good := server{version: "7.0.15", mode: Standalone, policy: "noeviction"}
	for _, c := range []struct {
		change func(*server)
		mode   string
		want   string // empty: it is good
	}{
		{func(*server) {}, Standalone, ""},
		{func(s *server) { s.version = "8.2.0" }, Sentinel, ""},
		{func(s *server) { s.mode = Cluster }, Cluster, ""},
		{func(s *server) { s.mode = Cluster }, Standalone, "set mode to cluster"},
		{func(s *server) { s.version = "6.2.14" },
			Standalone, `Redis "6.2.14": claims need Redis 7.0 or later`},
		{func(s *server) { s.version = "" }, Standalone, "claims need Redis 7.0 or later"},
		{func(s *server) { s.policy = "allkeys-lru" },
			Standalone, `"allkeys-lru": short of memory it would delete claims`},
		{func(s *server) { s.policy = "volatile-ttl" }, Standalone, "set it to noeviction"},
		{func(s *server) { s.policy = "" }, Standalone, "set it to noeviction"},
	} {
		s := good
		c.change(&s)
		err := s.problem(c.mode)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %q", s, err, c.want)
		}
	}
}
