package cassandra_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/cassandra"
	"github.com/kdedup/kdedup/dedup/storetest"
	"github.com/kdedup/kdedup/internal/testkit/cqltest"
)

// None of these is the server itself: it is what its maker documents, and TestConformance has the real Cassandra.
func TestConformanceOnServersThatAnswerAsDocumented(t *testing.T) {
	if testing.Short() {
		t.Skip("the whole suite is not for -short")
	}
	for name, dialect := range map[string]cqltest.Dialect{"ScyllaDB": cqltest.ScyllaDB, "Amazon Keyspaces": cqltest.Keyspaces} {
		t.Run(name, func(t *testing.T) {
			options := optionsFor(t, cqltest.Start(t, dialect).Addr())
			create(t, options)
			store := open(t, options)
			t.Cleanup(func() { _ = store.Close() })
			storetest.Run(t, func(*testing.T) dedup.Store { return &faulty{Store: store} }, storetest.Features{
				ExpiryGranularity: time.Second,
				Reopen: func(t *testing.T, _ dedup.Store) dedup.Store {
					again := open(t, options)
					t.Cleanup(func() { _ = again.Close() })
					return again
				},
				Ambiguous: func(t *testing.T, s dedup.Store) { s.(*faulty).loseNextAnswer() },
			})
		})
	}
}

// The answers of docs/kb/lwt-differences.rst in ScyllaDB's repository and of Cassandra's CQL reference, for a batch of
// conditional inserts of which one meets a row.
func TestTheServersOfTheseTestsAnswerAsDocumented(t *testing.T) {
	existing := map[string]any{
		"[applied]": false, "consumer_group": "g", "topic": "t", "bucket": 1, "message_id": []byte("b"), "owner": map[string]any(nil),
	}
	absent := map[string]any{
		"[applied]": false, "consumer_group": "", "topic": "", "bucket": 0, "message_id": []byte{}, "owner": map[string]any(nil),
	}
	appliedAbsent := map[string]any{
		"[applied]": true, "consumer_group": "", "topic": "", "bucket": 0, "message_id": []byte{}, "owner": map[string]any(nil),
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
			[]map[string]any{absent, existing, absent}, []map[string]any{appliedAbsent, appliedAbsent},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			options := optionsFor(t, cqltest.Start(t, c.dialect).Addr())
			create(t, options)
			session := cassandra.Session(t, options)
			batch := func(ids ...string) []map[string]any {
				t.Helper()
				insert := "INSERT INTO " + options.Keyspace + ".processed_messages (consumer_group, topic, bucket, message_id) VALUES ('g', 't', ?, ?) IF NOT EXISTS; "
				var values []any
				for _, id := range ids {
					values = append(values, 1, []byte(id))
				}
				rows, err := session.Query("BEGIN UNLOGGED BATCH "+strings.Repeat(insert, len(ids))+"APPLY BATCH", values...).
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
		{"no conditions in batches", cqltest.Dialect{UnconditionalBatches: true}, "Only unconditional statements are permitted in a batch"},
		{"no serial levels", unnamed, "is not supported for this operation"},
		{"no conditions at all", cqltest.ScyllaTablets, "LWT is not yet supported with tablets"},
	} {
		t.Run(c.name, func(t *testing.T) {
			options := optionsFor(t, cqltest.Start(t, c.dialect).Addr())
			create(t, options)
			store, err := cassandra.Open(t.Context(), options, prometheus.NewRegistry())
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
