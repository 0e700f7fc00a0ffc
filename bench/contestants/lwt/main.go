// Command lwt is a consumer as it is often written by hand: each record's ID is inserted into a
// Cassandra table with IF NOT EXISTS, many inserts in flight; records whose insert was applied are
// produced, in order, and the offsets are committed when that is acknowledged.
//
// It forwards at least once, except that a crash, or an insert that timed out and was applied,
// drops the record: the row does not say whose it is.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gocql/gocql"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/kdedup/kdedup/bench/contestants/member"
)

func main() {
	o := member.Flags(10_000, 1)
	hosts := flag.String("cassandra", "127.0.0.1:9042", "nodes, with commas")
	keyspace := flag.String("keyspace", "",
		"keyspace of the table seen (id text PRIMARY KEY, at timestamp)")
	inFlight := flag.Int("in-flight", 256, "inserts at the same time")
	flag.Parse()

	session, err := connect(strings.Split(*hosts, ","), *keyspace)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer session.Close()
	c := &consumer{Options: o, session: session, inFlight: *inFlight}
	o.Main(func(ctx context.Context, _ int) error { return o.AtLeastOnce(ctx, c.forward) })
	fmt.Fprintf(os.Stderr, "%d inserts were tried again\n", c.again.Load())
}

// connect uses the driver's defaults but for what Paxos needs: replicas are asked in a fixed order,
// so that the inserts of one row meet at one node.
func connect(hosts []string, keyspace string) (*gocql.Session, error) {
	cluster := gocql.NewCluster(hosts...)
	cluster.Keyspace = keyspace
	cluster.Consistency = gocql.LocalQuorum
	cluster.SerialConsistency = gocql.LocalSerial
	cluster.Timeout = 20 * time.Second
	cluster.DefaultTimestamp = false
	cluster.PoolConfig.HostSelectionPolicy = gocql.TokenAwareHostPolicy(
		gocql.RoundRobinHostPolicy())
	return cluster.CreateSession()
}

type consumer struct {
	*member.Options
	session  *gocql.Session
	inFlight int
	again    atomic.Int64 // inserts that were tried once more: as many records may be lost
}

func (c *consumer) forward(ctx context.Context, client *kgo.Client, records []*kgo.Record) error {
	first, err := c.insertAll(ctx, records)
	if err != nil {
		return err
	}
	batch := c.NewBatch(client)
	for i, r := range records {
		if first[i] {
			batch.Add(ctx, r)
		}
	}
	return batch.Flush(ctx, client)
}

// insertAll keeps as many inserts in flight as are allowed, and says which were applied. Of equal
// IDs in one poll any one may win.
func (c *consumer) insertAll(ctx context.Context, records []*kgo.Record) ([]bool, error) {
	applied := make([]bool, len(records))
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range min(c.inFlight, len(records)) {
		group.Go(func() (err error) {
			for {
				i := next.Add(1) - 1
				if i >= int64(len(records)) {
					return nil
				}
				if applied[i], err = c.insert(ctx, member.ID(records[i])); err != nil {
					return fmt.Errorf("insert: %w", err)
				}
			}
		})
	}
	return applied, group.Wait()
}

// insert tries a few times: a busy node times out. If the first try was applied all the same, the
// second one takes the record for a copy of itself.
func (c *consumer) insert(ctx context.Context, id string) (applied bool, err error) {
	const tries = 10
	for range tries {
		var (
			known string
			at    time.Time
		)
		applied, err = c.session.Query("INSERT INTO seen (id, at) VALUES (?, ?) IF NOT EXISTS", id,
			time.Now()).
			WithContext(ctx).ScanCAS(&known, &at)
		if err == nil || ctx.Err() != nil {
			break
		}
		c.again.Add(1)
	}
	return applied, err
}
