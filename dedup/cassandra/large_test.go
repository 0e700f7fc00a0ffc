package cassandra

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gocql/gocql"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/lab/workload"
)

// BenchmarkClaimsInALargeTable claims new random IDs, two batches of 20,000 at a time as the lanes
// of one process do, in a table that LARGE_TABLE rows were inserted into before, for each number of
// buckets in LARGE_BUCKETS. Plain inserts make these several times as fast as claims would. Run it
// with -benchtime=25x: a million claims. With -count=2 the second run finds the table of the first.
func BenchmarkClaimsInALargeTable(b *testing.B) {
	rows, err := strconv.Atoi(os.Getenv("LARGE_TABLE"))
	if err != nil {
		b.Skip("set LARGE_TABLE to the number of rows, LARGE_BUCKETS to numbers of buckets")
	}
	for _, buckets := range strings.Split(cmp.Or(os.Getenv("LARGE_BUCKETS"), "128"), ",") {
		n, err := strconv.Atoi(buckets)
		if err != nil {
			b.Fatal("LARGE_BUCKETS: ", err)
		}
		large := &largeTable{keyspace: testkit.Keyspace(b), buckets: n,
			spec: workload.Spec{IDBytes: 36, Seed: 1, Size: 200}}
		b.Run("buckets="+buckets, func(b *testing.B) { large.measure(b, rows) })
		large.drop(b)
	}
}

// largeTable is a table of one scope, filled from the first ID on.
type largeTable struct {
	keyspace string
	buckets  int
	spec     workload.Spec
	store    *Store
	scope    dedup.Scope
	next     int // ID
	repeats  atomic.Int64
}

const (
	warmUp     = 1_000_000 // claims, until the node has compiled its code
	largeBatch = 20_000
)

func (l *largeTable) measure(b *testing.B, rows int) {
	if l.store == nil {
		l.open(b)
		for l.next < warmUp {
			l.claimTwo(b, nil)
		}
		start := time.Now()
		l.insert(b, rows)
		b.Logf("inserted %d rows in %v", rows, time.Since(start).Round(time.Second))
	}
	l.settle(b)
	var took []time.Duration
	l.repeats.Store(0)
	for b.Loop() {
		l.claimTwo(b, &took)
	}
	slices.Sort(took)
	b.ReportMetric(float64(2*largeBatch*b.N)/b.Elapsed().Seconds(), "claims/s")
	b.ReportMetric(took[len(took)/2].Seconds()*1000, "p50-ms/batch")
	b.ReportMetric(took[len(took)-1].Seconds()*1000, "max-ms/batch")
	b.ReportMetric(float64(l.repeats.Load()), "repeats")
}

func (l *largeTable) open(b *testing.B) {
	options := Options{
		Hosts: []string{testkit.Cassandra(b)}, Keyspace: l.keyspace, Table: "processed_messages",
		Consistency: "LOCAL_QUORUM", SerialConsistency: "LOCAL_SERIAL",
		Timeout: 20 * time.Second, Connections: 2, InFlight: 64, BatchClaims: 200,
		Logger: slog.New(slog.DiscardHandler),
	}
	if err := Setup(
		b.Context(), options, "{'class': 'SimpleStrategy', 'replication_factor': 1}", false,
		func(string) {},
	); err != nil {
		b.Fatal(err)
	}
	store, err := Open(b.Context(), options, prometheus.NewRegistry())
	if err != nil {
		b.Fatal(err)
	}
	l.store, l.scope = store, dedup.Scope{ConsumerGroup: "orders-dedup", Name: "orders",
		TTL: 24 * time.Hour, Buckets: l.buckets}
	if err := store.Register(b.Context(), l.scope); err != nil {
		b.Fatal(err)
	}
}

func (l *largeTable) drop(b *testing.B) {
	if l.store == nil {
		return // another one was asked for
	}
	if err := l.store.session.Query("DROP KEYSPACE " + l.keyspace).WithContext(
		b.Context(),
	).Exec(); err != nil {
		b.Error(err)
	}
	if err := l.store.Close(); err != nil {
		b.Error(err)
	}
}

// claims are the next ones.
func (l *largeTable) claims(n int) []dedup.Claim {
	claims := make([]dedup.Claim, n)
	for i := range claims {
		id := l.spec.ID(l.next)
		claims[i] = dedup.Claim{ID: dedup.ID(id), Owner: dedup.Coordinates{TopicID: [16]byte{1},
			Partition: int32(l.next % 8), Offset: int64(l.next)}}
		copy(claims[i].Fingerprint[:], id[8:]) // as random as a hash
		l.next++
	}
	return claims
}

// claimTwo makes two batches of claims, and repeats what the server left open, as a lane does.
func (l *largeTable) claimTwo(b *testing.B, took *[]time.Duration) {
	var (
		lanes errgroup.Group
		times [2]time.Duration
	)
	for i := range times {
		claims := l.claims(largeBatch)
		lanes.Go(func() error {
			start := time.Now()
			_, err := l.store.Claim(b.Context(), l.scope, claims)
			for ; err != nil && b.Context().Err() == nil; l.repeats.Add(1) {
				_, err = l.store.Claim(b.Context(), l.scope, claims)
			}
			times[i] = time.Since(start)
			return err
		})
	}
	if err := lanes.Wait(); err != nil {
		b.Fatal(err)
	}
	if took != nil {
		*took = append(*took, times[:]...)
	}
}

// insert adds rows that nobody claimed.
func (l *largeTable) insert(b *testing.B, rows int) {
	st, err := l.store.state(b.Context(), l.scope)
	if err != nil {
		b.Fatal(err)
	}
	for until := l.next + rows; l.next < until; {
		claims := l.claims(min(500_000, until-l.next))
		var requests errgroup.Group
		requests.SetLimit(32)
		for bucket, members := range groupByBucket(st, st.hashes(claims)) {
			for chunk := range slices.Chunk(members, 100) {
				requests.Go(func() error {
					return l.insertChunk(b.Context(), st, bucket, claims, chunk)
				})
			}
		}
		if err := requests.Wait(); err != nil {
			b.Fatal(err)
		}
	}
}

func (l *largeTable) insertChunk(
	ctx context.Context, st *scopeState, bucket int32, claims []dedup.Claim, chunk []int32,
) error {
	rows := borrowRows(bucket, len(chunk))
	defer rows.giveBack()
	for _, i := range chunk {
		rows.bind(&claims[i], time.UnixMilli(time.Now().UnixMilli()))
	}
	statement := strings.ReplaceAll(st.batch(len(chunk)), " IF NOT EXISTS", "")
	return l.store.session.Query(statement, rows.values...).WithContext(ctx).RoutingKey(
		st.routingKey(bucket)).Exec()
}

// settle returns when the node compacts nothing, and has nothing of the table in memory only.
func (l *largeTable) settle(b *testing.B) {
	if err := l.flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	quiet := 0
	testkit.Eventually(b, time.Hour, "no compaction", func() bool {
		iter := l.store.session.Query("SELECT task_id FROM system_views.sstable_tasks").WithContext(
			b.Context()).Consistency(gocql.One).Iter()
		quiet++
		if iter.NumRows() > 0 || iter.Close() != nil {
			quiet = 0
		}
		return quiet > 20
	})
}

// flush has the node write its memory to the disk, and then leave it alone.
func (l *largeTable) flush(ctx context.Context) error {
	for _, period := range []int{1000, 0} {
		alter := fmt.Sprintf(
			"ALTER TABLE %s.processed_messages WITH memtable_flush_period_in_ms = %d", l.keyspace,
			period)
		if err := l.store.session.Query(alter).WithContext(ctx).Exec(); err != nil {
			return fmt.Errorf("flush: %w", err)
		}
		time.Sleep(time.Duration(period) * 3 * time.Millisecond)
	}
	return nil
}
