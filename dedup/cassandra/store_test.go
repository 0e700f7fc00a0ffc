package cassandra_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/cassandra"
	"github.com/kdedup/kdedup/dedup/selftest"
	"github.com/kdedup/kdedup/internal/testkit"
)

func TestSetupIsSafeToRepeatAndDryRunChangesNothing(t *testing.T) {
	options := optionsFor(t, testkit.Cassandra(t))
	run := func(dryRun bool) (lines []string) {
		t.Helper()
		if err := cassandra.Setup(t.Context(), options, replication, dryRun, func(line string) {
			first, _, _ := strings.Cut(line, ":")
			lines = append(lines, strings.ReplaceAll(first, options.Keyspace, "KS"))
		}); err != nil {
			t.Fatal(err)
		}
		return lines
	}
	parts := []string{"keyspace KS", "type KS.claim_owner", "table KS.processed_messages",
		"table KS.dedup_scopes"}
	want := func(before, after string) (lines []string) {
		for _, part := range parts {
			lines = append(lines, before+part+after)
		}
		return lines
	}
	for _, step := range []struct {
		dryRun bool
		want   []string
	}{
		{true, want("would create ", "")}, {true, want("would create ", "")},
		{false, want("created ", "")}, {false, want("", " exists")}, {true, want("", " exists")},
	} {
		if diff := cmp.Diff(step.want, run(step.dryRun)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestOpenNamesWhatIsMissing(t *testing.T) {
	options := optionsFor(t, testkit.Cassandra(t))
	wantError := func(text string) {
		t.Helper()
		store, err := cassandra.Open(t.Context(), options, prometheus.NewRegistry())
		if err == nil {
			_ = store.Close()
		}
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want %q", err, text)
		}
	}
	wantError("keyspace " + options.Keyspace +
		" does not exist; create it with: kdedup setup -c FILE")
	create(t, options)
	options.Table = "other"
	wantError("table " + options.Keyspace +
		".other does not exist; create it with: kdedup setup -c FILE")
	options.Table = "dedup_scopes"
	wantError("name another table in store.cassandra.table")
	options.Consistency = "SOME"
	wantError("consistency")
}

// Known IDs make batches fail. Those that this process knows are read before, and from some share
// on all are. Every way gives the same answers.
func TestManyDuplicatesInLargeBatches(t *testing.T) {
	options := optionsFor(t, testkit.Cassandra(t))
	create(t, options)
	processes := [2]*cassandra.Store{open(t, options), open(t, options)}
	for _, p := range processes {
		defer p.Close()
	}
	scope := dedup.Scope{ConsumerGroup: "g", Name: "t", TTL: time.Hour, Buckets: 4}
	register(t, processes[0], scope)
	for round := range 30 {
		// Every round claims 500 IDs of which 400 are known from the round before, and 300 to this
		// process.
		from := round * 100
		answers, err := processes[round%2].Claim(t.Context(), scope,
			claimsOf(from, 500, int32(round)))
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range answers {
			known := round > 0 && i < 400
			if got := a.Outcome == dedup.Exists; got != known || a.Owner.Offset != int64(from+i) ||
				!known && a.Owner.Partition != int32(round) {
				t.Fatalf("round %d, claim %d: %+v", round, i, a)
			}
		}
	}
}

func TestKnownIDsSpoilNoBatchOfNewOnes(t *testing.T) {
	options := optionsFor(t, testkit.Cassandra(t))
	create(t, options)
	store := open(t, options)
	defer store.Close()
	scope := dedup.Scope{ConsumerGroup: "g", Name: "t", TTL: time.Hour, Buckets: 1}
	register(t, store, scope)
	for _, step := range []struct {
		name     string
		claims   []dedup.Claim
		requests float64
	}{
		{"new IDs need one batch", claimsOf(0, 100, 0), 1},
		{"known IDs need one read", claimsOf(0, 100, 0), 1},
		{"a few known among new IDs need one read and one batch", claimsOf(90, 100, 0), 2},
	} {
		before := cassandra.Requests(store)
		if _, err := store.Claim(t.Context(), scope, step.claims); err != nil {
			t.Fatal(err)
		}
		if got := cassandra.Requests(store) - before; got != step.requests {
			t.Errorf("%s: %v requests, want %v", step.name, got, step.requests)
		}
	}
}

// The server warns of unconditional batches above 5 KiB and refuses them above 50
// (batch_size_fail_threshold); a full batch of claims with long IDs is larger.
func TestAConditionalBatchMayBeLargerThanAnUnconditionalOne(t *testing.T) {
	for name, host := range paxosVariants {
		t.Run(name, func(t *testing.T) {
			options := optionsFor(t, host(t))
			create(t, options)
			store := open(t, options)
			defer store.Close()
			claims := claimsOf(0, options.BatchClaims, 0)
			for i := range claims {
				claims[i].ID += dedup.ID(strings.Repeat("x", 1000))
			}
			scope := dedup.Scope{ConsumerGroup: "g", Name: "t", TTL: time.Hour, Buckets: 1}
			register(t, store, scope)
			answers, err := store.Claim(t.Context(), scope, claims)
			if err != nil || cassandra.Requests(store) != 1 {
				t.Fatalf("%v requests, %v", cassandra.Requests(store), err)
			}
			for i, answer := range answers {
				if answer.Outcome != dedup.Applied {
					t.Fatalf("claim %d: %v", i, answer.Outcome)
				}
			}
		})
	}
}

// claimsOf are n claims by one partition, whose IDs and offsets count from a number.
func claimsOf(from, n int, partition int32) (list []dedup.Claim) {
	for i := range n {
		list = append(list, dedup.Claim{
			ID:    dedup.ID(fmt.Sprint("id-", from+i)),
			Owner: dedup.Coordinates{Partition: partition, Offset: int64(from + i)},
		})
	}
	return list
}

func TestRowsShowTheirOwnerInCQL(t *testing.T) {
	options := optionsFor(t, testkit.Cassandra(t))
	create(t, options)
	store := open(t, options)
	defer store.Close()
	claim := dedup.Claim{ID: "order-1", Owner: dedup.Coordinates{TopicID: [16]byte{15: 1},
		Partition: 3, Offset: 42, LeaderEpoch: 5}}
	scope := dedup.Scope{ConsumerGroup: "g", Name: "t", TTL: time.Hour, Buckets: 1}
	register(t, store, scope)
	if _, err := store.Claim(t.Context(), scope, []dedup.Claim{claim}); err != nil {
		t.Fatal(err)
	}
	row := cassandra.ReadRow(t, options, "SELECT bucket, message_id, owner, TTL(owner) AS ttl "+
		"FROM processed_messages WHERE consumer_group = 'g' AND topic = 't' AND bucket = 0")
	owner, _ := row["owner"].(map[string]any)
	if owner["partition"] != 3 || owner["offset"] != int64(42) || owner["epoch"] != 5 ||
		string(row["message_id"].([]byte)) != "order-1" {
		t.Errorf("got %v", row)
	}
	if ttl, _ := row["ttl"].(int); ttl < 3500 || ttl > 3600 {
		t.Errorf("ttl is %v", row["ttl"])
	}
}

// A scope that was registered by a version before the keys goes on in the buckets that xxHash64
// gives.
func TestAScopeOfAnEarlierVersionGoesOn(t *testing.T) {
	options := optionsFor(t, testkit.Cassandra(t))
	create(t, options)
	cassandra.Exec(t, options, "INSERT INTO dedup_scopes (consumer_group, topic, buckets, "+
		"extractor) VALUES ('g', 't', 16, 'header:id')")
	store := open(t, options)
	defer store.Close()
	scope := dedup.Scope{ConsumerGroup: "g", Name: "t", TTL: time.Hour, Buckets: 16,
		Extractor: "header:id"}
	register(t, store, scope)
	owner := dedup.Coordinates{TopicID: [16]byte{15: 1}, Partition: 3, Offset: 42, LeaderEpoch: 5}
	if _, err := store.Claim(
		t.Context(), scope, []dedup.Claim{{ID: "order-1", Owner: owner}},
	); err != nil {
		t.Fatal(err)
	}
	row := cassandra.ReadRow(t, options, "SELECT message_id FROM processed_messages WHERE "+
		"consumer_group = 'g' AND topic = 't' AND bucket = 13")
	if string(row["message_id"].([]byte)) != "order-1" {
		t.Errorf("got %v", row)
	}
}

// A version before the keys would look for the claims of a new scope in other buckets. It compares
// the column.
func TestAnEarlierVersionRefusesAScopeWithAKey(t *testing.T) {
	options := optionsFor(t, testkit.Cassandra(t))
	create(t, options)
	store := open(t, options)
	defer store.Close()
	scope := dedup.Scope{ConsumerGroup: "g", Name: "t", TTL: time.Hour, Buckets: 16,
		Extractor: "header:id"}
	register(t, store, scope)
	row := cassandra.ReadRow(t, options,
		"SELECT extractor FROM dedup_scopes WHERE consumer_group = 'g' AND topic = 't'")
	if column := row["extractor"].(string); !regexp.MustCompile(
		`^header:id key:[0-9a-f]{32}$`).MatchString(column) {
		t.Errorf("the column is %q", column)
	}
}

func register(t *testing.T, store *cassandra.Store, scope dedup.Scope) {
	t.Helper()
	if err := store.Register(t.Context(), scope); err != nil {
		t.Fatal(err)
	}
}

func TestTheSelfTestIsPassed(t *testing.T) {
	for name, host := range paxosVariants {
		t.Run(name, func(t *testing.T) {
			options := optionsFor(t, host(t))
			create(t, options)
			store := open(t, options)
			defer store.Close()
			steps := selftest.Run(t.Context(), store, "self-test", true)
			if last := steps[len(steps)-1]; !last.Passed {
				t.Errorf("%+v", last)
			}
		})
	}
}
