package cassandra

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/gocql/gocql"
	"golang.org/x/sync/errgroup"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/lab/workload"
)

// BenchmarkShapes claims new random IDs, two batches of 20,000 at a time as the lanes of one
// process do, in other rows and by other requests than the store's, in turns: SHAPES rounds of all,
// or of those whose names SHAPES_ONLY lists. The first round does not count: the node compiles its
// code in it. Every run has a table of its own. Run it with -benchtime=10x: 400,000 claims.
func BenchmarkShapes(b *testing.B) {
	rounds, err := strconv.Atoi(os.Getenv("SHAPES"))
	if err != nil {
		b.Skip("set SHAPES to the number of rounds")
	}
	only := os.Getenv("SHAPES_ONLY")
	for round := range rounds + 1 {
		for _, s := range shapes {
			if only == "" || slices.Contains(strings.Split(only, ","), s.name) {
				b.Run(fmt.Sprintf("%s/round=%d", s.name, round), s.measure)
			}
		}
	}
}

// shape is one way to store and send a claim. What is not set is as the store does it.
type shape struct {
	name    string
	idType  string   // blob
	columns []string // of the owner, with their types: one cell of the user type
	id      func(dedup.ID) any
	owner   func(*dedup.Claim, time.Time) []any
	// batches of the driver's making, a statement for each row, in place of one prepared batch
	driver     bool
	compressed bool // requests and answers, with Snappy
	unlocked   bool // two requests to a bucket may meet
}

var shapes = []shape{
	{name: "as-it-is"},
	{name: "packed-blob", columns: []string{"owner blob"}},
	{name: "six-columns", columns: []string{"topic_id uuid", `"partition" int`, `"offset" bigint`,
		"epoch int", "fingerprint blob", "claimed_at timestamp"}, owner: sixCells},
	{name: "text-id", idType: "text"},
	{name: "hashed-id", id: func(id dedup.ID) any { return hashed(id) }},
	{name: "driver-batch", driver: true},
	{name: "snappy", compressed: true},
	{name: "unlocked", unlocked: true},
}

func oneCell(c *dedup.Claim, at time.Time) []any {
	owner := cell(appendOwner(make([]byte, 0, ownerBytes), c, at))
	return []any{&owner}
}

func sixCells(c *dedup.Claim, at time.Time) []any {
	return []any{gocql.UUID(c.Owner.TopicID), c.Owner.Partition, c.Owner.Offset,
		c.Owner.LeaderEpoch, c.Fingerprint[:], at}
}

// hashed has the length of the hash that an ID could be replaced by.
func hashed(id dedup.ID) []byte {
	h := xxhash.Sum64String(string(id))
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, h),
		h*0x9E3779B97F4A7C15)
}

// toy claims in one table, and repeats nothing: an ID that is there, or a timeout, is an error.
type toy struct {
	shape
	session *gocql.Session
	scope   *scopeState // for its buckets, their locks and the routing key
	insert  string
	next    int
}

func (s shape) measure(b *testing.B) {
	t := s.open(b)
	before := processorTime(b)
	for b.Loop() {
		var lanes errgroup.Group
		for range 2 {
			claims := t.claims(largeBatch)
			lanes.Go(func() error { return t.claim(b.Context(), claims) })
		}
		if err := lanes.Wait(); err != nil {
			b.Fatal(err)
		}
	}
	n := float64(2 * largeBatch * b.N)
	b.ReportMetric(n/b.Elapsed().Seconds(), "claims/s")
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/n, "client-µs/claim")
}

// open makes a keyspace with one table of this shape, which goes when the benchmark ends.
func (s shape) open(b *testing.B) *toy {
	if s.idType == "" {
		s.idType = "blob"
	}
	if s.columns == nil {
		s.columns = []string{"owner frozen<claim_owner>"}
	}
	if s.id == nil {
		s.id = func(id dedup.ID) any { return (*blob)(&id) }
	}
	if s.owner == nil {
		s.owner = oneCell
	}
	o := Options{
		Hosts: []string{testkit.Cassandra(b)}, Keyspace: testkit.Keyspace(b), Table: "claims",
		Consistency: "LOCAL_QUORUM", SerialConsistency: "LOCAL_SERIAL",
		Timeout: 20 * time.Second, Connections: 2, InFlight: 64, BatchClaims: 200,
		Logger: slog.New(slog.DiscardHandler),
	}
	if err := Setup(
		b.Context(), o, "{'class': 'SimpleStrategy', 'replication_factor': 1}", false,
		func(string) {},
	); err != nil {
		b.Fatal(err)
	}
	t := &toy{shape: s, session: s.connect(b, o), scope: newScopeState("",
		dedup.Scope{ConsumerGroup: "orders-dedup", Name: "orders", Buckets: 128}, newHasher())}
	b.Cleanup(func() { t.exec(b, "DROP KEYSPACE "+o.Keyspace); t.session.Close() })
	create := o.createClaims("5.0")
	create = strings.Replace(create, "message_id blob, owner frozen<claim_owner>",
		"message_id "+s.idType+", "+strings.Join(s.columns, ", "), 1)
	create = strings.Replace(create, "EXISTS "+o.Keyspace+".claims", "EXISTS "+o.Keyspace+".shaped",
		1)
	t.exec(b, create)
	var names []string
	for _, c := range s.columns {
		name, _, _ := strings.Cut(c, " ")
		names = append(names, name)
	}
	t.insert = fmt.Sprintf("INSERT INTO %s.shaped (consumer_group, topic, bucket, message_id, "+
		"%s) VALUES ('orders-dedup', 'orders', ?, ?%s) IF NOT EXISTS USING TTL 604800",
		o.Keyspace, strings.Join(names, ", "), strings.Repeat(", ?", len(names)))
	return t
}

func (s shape) connect(b *testing.B, o Options) *gocql.Session {
	cluster := gocql.NewCluster(o.Hosts...)
	cluster.Consistency, cluster.SerialConsistency = gocql.LocalQuorum, gocql.LocalSerial
	cluster.Timeout, cluster.NumConns = o.Timeout, o.Connections
	cluster.DisableSkipMetadata, cluster.DefaultTimestamp = true, false
	cluster.Logger = driverLog{o.Logger}
	cluster.PoolConfig.HostSelectionPolicy = gocql.TokenAwareHostPolicy(
		gocql.RoundRobinHostPolicy())
	if s.compressed {
		cluster.Compressor = gocql.SnappyCompressor{}
	}
	session, err := cluster.CreateSession()
	if err != nil {
		b.Fatal(err)
	}
	return session
}

// exec also runs when the benchmark's context has ended.
func (t *toy) exec(b *testing.B, statement string) {
	b.Helper()
	if err := t.session.Query(statement).WithContext(
		context.WithoutCancel(b.Context()),
	).Exec(); err != nil {
		b.Error(err)
	}
}

func (t *toy) claims(n int) []dedup.Claim {
	from := &largeTable{spec: workload.Spec{IDBytes: 36, Seed: 1, Size: 200}, next: t.next}
	claims := from.claims(n)
	t.next = from.next
	return claims
}

func (t *toy) claim(ctx context.Context, claims []dedup.Claim) error {
	var buckets errgroup.Group
	buckets.SetLimit(32) // for each of two lanes
	for bucket, members := range groupByBucket(t.scope, t.scope.hashes(claims)) {
		buckets.Go(func() error {
			if lock := t.scope.locks[bucket]; !t.unlocked {
				lock <- struct{}{}
				defer func() { <-lock }()
			}
			for chunk := range slices.Chunk(members, 200) {
				if err := t.request(ctx, bucket, claims, chunk); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return buckets.Wait()
}

var errRefused = errors.New("a claim of a new ID was refused")

func (t *toy) request(
	ctx context.Context, bucket int32, claims []dedup.Claim, chunk []int32,
) error {
	var (
		values  = make([][]any, 0, len(chunk))
		at      = time.UnixMilli(time.Now().UnixMilli())
		applied bool
		err     error
	)
	for i := range paddedSize(len(chunk)) {
		claim := &claims[chunk[min(i, len(chunk)-1)]]
		values = append(values, append([]any{bucket, t.id(claim.ID)}, t.owner(claim, at)...))
	}
	if t.driver {
		applied, err = t.sendBatch(ctx, values)
	} else {
		statement := "BEGIN UNLOGGED BATCH " + strings.Repeat(t.insert+"; ", len(values)) +
			"APPLY BATCH"
		applied, err = t.session.Query(statement, slices.Concat(values...)...).WithContext(
			ctx).RoutingKey(t.scope.routingKey(bucket)).ScanCAS()
	}
	if err == nil && !applied {
		err = errRefused
	}
	return err
}

func (t *toy) sendBatch(ctx context.Context, values [][]any) (applied bool, err error) {
	batch := t.session.NewBatch(gocql.UnloggedBatch).WithContext(ctx)
	for _, row := range values {
		batch.Query(t.insert, row...)
	}
	applied, iter, err := t.session.ExecuteBatchCAS(batch)
	if err != nil {
		return false, err
	}
	return applied, iter.Close()
}

// processorTime is what this process has used.
func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
