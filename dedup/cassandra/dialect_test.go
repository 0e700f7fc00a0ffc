package cassandra_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/cassandra"
	"github.com/kdedup/kdedup/internal/testkit/cqltest"
)

// This is not ScyllaDB but what it documents. TestConformance has the real Cassandra.
func TestConformanceOnTheAnswersOfScyllaDB(t *testing.T) {
	if testing.Short() {
		t.Skip("the whole suite is not for -short")
	}
	conform(t, cqltest.Start(t, cqltest.ScyllaDB).Addr())
}

// A batch with conditions, or a serial level, would be refused.
func TestAmazonKeyspacesGetsOneInsertForEachClaim(t *testing.T) {
	options := optionsFor(t, cqltest.Start(t, cqltest.Keyspaces).Addr())
	create(t, options)
	store := open(t, options)
	defer store.Close()
	scope := dedup.Scope{ConsumerGroup: "g", Name: "t", TTL: time.Hour, Buckets: 4,
		Extractor: "key"}
	if err := store.Register(t.Context(), scope); err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		claims := make([]dedup.Claim, 60)
		for i := range claims { // two thirds are known from the round before
			claims[i] = dedup.Claim{ID: dedup.ID(fmt.Sprint("id-", 20*round+i)),
				Owner: dedup.Coordinates{Partition: int32(round), Offset: int64(20*round + i)}}
		}
		answers, err := store.Claim(t.Context(), scope, claims)
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range answers {
			if known := round > 0 && i < 40; (a.Outcome == dedup.Exists) != known ||
				a.Owner.Offset != claims[i].Owner.Offset {
				t.Errorf("round %d, claim %d: %+v", round, i, a)
			}
		}
	}
	if found, err := store.Lookup(t.Context(), scope, "id-7"); err != nil ||
		found.Owner.Offset != 7 {
		t.Errorf("got %+v, %v", found, err)
	}
	if err := errors.Join(
		store.Release(t.Context(), scope, "id-7"), store.Forget(t.Context(), scope),
	); err != nil {
		t.Error(err)
	}
	if _, found, err := store.Registered(t.Context(), scope); found || err != nil {
		t.Errorf("the scope is still registered, or %v", err)
	}
}

// The answers of docs/kb/lwt-differences.rst in ScyllaDB's repository and of Cassandra's CQL
// reference, for a batch of conditional inserts of which one meets a row.
func TestTheServersOfTheseTestsAnswerAsDocumented(t *testing.T) {
	existing := map[string]any{
		"[applied]": false, "consumer_group": "g", "topic": "t", "bucket": 1,
		"message_id": []byte("b"), "owner": map[string]any(nil),
	}
	absent := map[string]any{
		"[applied]": false, "consumer_group": "", "topic": "", "bucket": 0, "message_id": []byte{},
		"owner": map[string]any(nil),
	}
	appliedAbsent := map[string]any{
		"[applied]": true, "consumer_group": "", "topic": "", "bucket": 0, "message_id": []byte{},
		"owner": map[string]any(nil),
	}
	for _, c := range []struct {
		name             string
		dialect          cqltest.Dialect
		refused, applied []map[string]any
	}{
		{
			"Cassandra lists the existing rows", cqltest.Dialect{},
			[]map[string]any{existing}, []map[string]any{{"[applied]": true}},
		},
		{
			"ScyllaDB lists every statement", cqltest.ScyllaDB,
			[]map[string]any{absent, existing, absent},
			[]map[string]any{appliedAbsent, appliedAbsent},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			options := optionsFor(t, cqltest.Start(t, c.dialect).Addr())
			create(t, options)
			session := cassandra.DriverSession(t, options)
			batch := func(ids ...string) []map[string]any {
				t.Helper()
				insert := "INSERT INTO " + options.Keyspace + ".processed_messages " +
					"(consumer_group, topic, bucket, message_id) VALUES ('g', 't', ?, ?) IF NOT " +
					"EXISTS; "
				var values []any
				for _, id := range ids {
					values = append(values, 1, []byte(id))
				}
				rows, err := session.Query("BEGIN UNLOGGED BATCH "+strings.Repeat(insert, len(ids))+
					"APPLY BATCH", values...).
					WithContext(t.Context()).Iter().SliceMap()
				if err != nil {
					t.Fatal(err)
				}
				return rows
			}
			batch("b")
			if diff := cmp.Diff(c.refused, batch("c", "b", "a")); diff != "" {
				t.Errorf("refused (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.applied, batch("c", "a")); diff != "" {
				t.Errorf("applied (-want +got):\n%s", diff)
			}
		})
	}
}

// Where the name of the cluster does not tell, the error of the server does.
func TestRefusedStatementsAreErrorsOfTheServer(t *testing.T) {
	unnamed := cqltest.Keyspaces
	unnamed.ClusterName = "other"
	scope := dedup.Scope{ConsumerGroup: "g", Name: "t", TTL: time.Hour, Buckets: 1}
	for _, c := range []struct {
		name    string
		dialect cqltest.Dialect
		want    string
	}{
		{"no conditions in batches", cqltest.Dialect{UnconditionalBatches: true},
			"Only unconditional statements are permitted in a batch"},
		{"no serial levels", unnamed, "is not supported for this operation"},
		{"no conditions at all", cqltest.ScyllaTablets, "LWT is not yet supported with tablets"},
	} {
		t.Run(c.name, func(t *testing.T) {
			options := optionsFor(t, cqltest.Start(t, c.dialect).Addr())
			create(t, options)
			store, err := cassandra.Open(t.Context(), options, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			answers, err := store.Claim(t.Context(), scope, []dedup.Claim{{ID: "a"}, {ID: "b"}})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			for _, a := range answers {
				if a.Outcome != dedup.Undecided {
					t.Errorf("got %+v", a)
				}
			}
		})
	}
}
