package cassandra_test

import (
	"testing"
	"time"

	"github.com/gocql/gocql"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/cassandra"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/lab/workload"
)

// The advice of `kdedup bench` multiplies RowBytes by millions.
func TestAClaimTakesAboutAsMuchDiskAsIsAdvised(t *testing.T) {
	const idBytes, n = 36, 60_000
	options := optionsFor(t, testkit.Cassandra(t))
	create(t, options)
	store := open(t, options)
	defer store.Close()
	claimRandom(t, store, idBytes, n)
	got, want := diskBytes(t, options)/n, cassandra.RowBytes(idBytes)
	t.Logf("%d bytes a claim on the disk, %d advised", got, want)
	if got < want*6/10 || got > want*14/10 { // the server tells its disk usage in MiB
		t.Errorf("a claim takes %d bytes, the advice is for %d", got, want)
	}
}

func claimRandom(t *testing.T, store dedup.Store, idBytes, n int) {
	t.Helper()
	spec := workload.Spec{IDBytes: idBytes, Seed: 1, Size: 200}
	scope := dedup.Scope{ConsumerGroup: "orders-dedup", Name: "orders", TTL: time.Hour, Buckets: 64}
	if err := store.Register(t.Context(), scope); err != nil {
		t.Fatal(err)
	}
	const batch = 5000
	for from := 0; from < n; from += batch {
		claims := make([]dedup.Claim, batch)
		for i := range claims {
			claims[i] = dedup.Claim{
				ID: dedup.ID(spec.ID(from + i)),
				Owner: dedup.Coordinates{TopicID: [16]byte{1, 2, 3}, Partition: int32(i % 8),
					Offset: int64(from + i), LeaderEpoch: 3},
			}
			copy(claims[i].Fingerprint[:], spec.ID(from+i+n)) // as random as a hash
		}
		for {
			answers, err := store.Claim(t.Context(), scope, claims)
			if err == nil && answers[0].Outcome != dedup.Undecided {
				break
			}
			if t.Context().Err() != nil {
				t.Fatal(err)
			}
		}
	}
}

// diskBytes has the server write the table to its disk and asks how large it is there.
func diskBytes(t *testing.T, o cassandra.Options) int {
	t.Helper()
	cluster := gocql.NewCluster(o.Hosts...)
	cluster.Timeout, cluster.ConnectTimeout = time.Minute, time.Minute
	session, err := cluster.CreateSession()
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	alter := "ALTER TABLE " + o.Keyspace + "." + o.Table + " WITH memtable_flush_period_in_ms = 500"
	if err := session.Query(alter).Exec(); err != nil {
		t.Fatal(err)
	}
	var mebibytes int
	testkit.Eventually(t, 2*time.Minute, "the table on the disk", func() bool {
		err := session.Query("SELECT mebibytes FROM system_views.disk_usage WHERE keyspace_name "+
			"= ? AND table_name = ?",
			o.Keyspace, o.Table).Scan(&mebibytes)
		return err == nil && mebibytes > 1
	})
	return mebibytes << 20
}
