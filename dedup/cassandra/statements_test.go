package cassandra

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kdedup/kdedup/dedup"
)

func testScope() dedup.Scope {
	return dedup.Scope{ConsumerGroup: "it's", Name: "a.b", TTL: 90 * time.Second, Buckets: 16}
}

func TestStatements(t *testing.T) {
	s := newScopeState("ks.claims", testScope(), hasher{})
	insert := "INSERT INTO ks.claims (consumer_group, topic, bucket, message_id, owner) VALUES " +
		"('it''s', 'a.b', ?, ?, ?) IF NOT EXISTS USING TTL 90"
	for n, want := range map[int]string{
		1: insert,
		2: "BEGIN UNLOGGED BATCH " + insert + "; " + insert + "; APPLY BATCH",
	} {
		if got := s.batch(n); got != want {
			t.Errorf("batch of %d: %s", n, got)
		}
	}
	if want := "SELECT message_id, owner FROM ks.claims WHERE consumer_group = 'it''s' AND topic " +
		"= 'a.b' AND bucket = ? AND message_id IN ?"; s.selectIn != want {
		t.Errorf("select: %s", s.selectIn)
	}
}

func TestPaddedSizesAreFewAndCloseAbove(t *testing.T) {
	for n := 1; n <= 200; n++ {
		if got := paddedSize(n); got < n || got > n+n/12+2 {
			t.Errorf("%d claims make a batch of %d", n, got)
		}
	}
}

// The bucket is stored: a claim whose bucket is computed differently is never found again.
func TestBucketsNeverChange(t *testing.T) {
	for column, want := range map[string]map[dedup.ID]int32{
		// of a version before the keys
		"header:message-id": {"a": 11, "b": 11, "order-1": 13, "\x00\xff": 13},
		"header:message-id key:000102030405060708090a0b0c0d0e0f": {"a": 7, "b": 15, "order-1": 5,
			"\x00\xff": 13},
	} {
		extractor, hash := splitExtractor(column)
		if extractor != "header:message-id" {
			t.Errorf("%q is taken for the extractor %q", column, extractor)
		}
		s := newScopeState("t", testScope(), hash)
		got := make(map[dedup.ID]int32)
		for id := range want {
			got[id] = s.bucket(s.hash.sum(id))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", column, diff)
		}
	}
}

// Whoever may write to the input knows xxHash64, and not the key.
func TestIDsThatShareABucketWithoutAKeyAreSpreadByIt(t *testing.T) {
	old, keyed := newScopeState("t", testScope(), hasher{}),
		newScopeState("t", testScope(), newHasher())
	met := make(map[int32]bool)
	for i, aimed := 0, 0; aimed < 200; i++ {
		id := dedup.ID(strconv.Itoa(i))
		if old.bucket(old.hash.sum(id)) == 3 {
			aimed++
			met[keyed.bucket(keyed.hash.sum(id))] = true
		}
	}
	if len(met) != testScope().Buckets {
		t.Errorf("200 IDs of one bucket meet %d of %d", len(met), testScope().Buckets)
	}
}

func TestTheTransactionalModeOfATableIsFound(t *testing.T) {
	for statement, want := range map[string]string{
		"CREATE TABLE k.t (p int PRIMARY KEY) WITH comment = '' AND transactional_mode = " +
			"'mixed_reads' AND x = 1": "mixed_reads",
		"CREATE TABLE k.t (p int PRIMARY KEY) WITH transactional_mode = 'off'": "off",
		"CREATE TABLE k.t (p int PRIMARY KEY)":                                 "off",
	} {
		if got := transactionalMode(statement); got != want {
			t.Errorf("%s: %q, want %q", statement, got, want)
		}
	}
}

func TestRoutingKeyIsTheComposedPartitionKey(t *testing.T) {
	s := newScopeState("t", testScope(), hasher{})
	want := "\x00\x04it's\x00" + "\x00\x03a.b\x00" + "\x00\x04\x00\x00\x00\x07\x00"
	if got := string(s.routingKey(7)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLocksAreBoundedForManyBuckets(t *testing.T) {
	scope := testScope()
	scope.Buckets = 1_000_000
	if n := len(newScopeState("t", scope, hasher{}).locks); n != maxStripes {
		t.Errorf("%d locks", n)
	}
}

func TestOwnerCellsRoundTrip(t *testing.T) {
	claim := &dedup.Claim{
		Owner: dedup.Coordinates{TopicID: [16]byte{0: 1, 15: 0xff}, Partition: math.MaxInt32,
			Offset: math.MaxInt64, LeaderEpoch: -1},
		Fingerprint: dedup.Fingerprint{0: 9, 15: 8},
	}
	at := time.UnixMilli(1_700_000_000_123)
	var cell ownerCell
	if err := cell.UnmarshalCQL(nil, appendOwner(nil, claim, at)); err != nil {
		t.Fatal(err)
	}
	want := dedup.Answer{Outcome: dedup.Exists, Owner: claim.Owner, Fingerprint: claim.Fingerprint,
		ClaimedAt: at}
	if diff := cmp.Diff(want, cell.answer); diff != "" || !cell.found {
		t.Error(diff)
	}
	if err := cell.UnmarshalCQL(nil, nil); err != nil || cell.found ||
		cell.answer != (dedup.Answer{}) {
		t.Errorf("null: %+v, %v", cell, err)
	}
	if err := cell.UnmarshalCQL(nil, []byte("short")); err == nil ||
		!strings.Contains(err.Error(), "kdedup setup") {
		t.Errorf("got %v", err)
	}
}

// FuzzOwnerCell: whatever the table holds, reading it ends in an answer or an error.
func FuzzOwnerCell(f *testing.F) {
	f.Add(appendOwner(nil, &dedup.Claim{}, time.Now()))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		var cell ownerCell
		if err := cell.UnmarshalCQL(nil, data); err == nil && data != nil && !cell.found {
			t.Errorf("%x was read as nothing", data)
		}
	})
}

func TestReadsComeFirstWhenABatchWouldMostLikelyFail(t *testing.T) {
	var r duplicateRatio
	if r.readFirst(100) {
		t.Error("nothing is known, so a batch comes first")
	}
	for range 500 {
		r.observe(5, 100)
	}
	for n, want := range map[int]bool{1: false, 10: false, 20: true, 100: true} {
		if got := r.readFirst(n); got != want {
			t.Errorf("5 %% duplicates, %d claims: %v", n, got)
		}
	}
	r.observe(0, 0)
	if got := r.load(); got < 0.049 || got > 0.051 {
		t.Errorf("ratio %v, want 0.05", got)
	}
}
