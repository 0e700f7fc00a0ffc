package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gocql/gocql"
)

const (
	schemaLimit = 30 * time.Second // for one change of the schema; a busy node takes long
	settleLimit = 2 * time.Minute
	settleEvery = 500 * time.Millisecond
)

// database prepares Cassandra for a run.
type database struct{ session *gocql.Session }

func openDatabase(hosts string) (*database, error) {
	cluster := gocql.NewCluster(strings.Split(hosts, ",")...)
	cluster.Timeout, cluster.ConnectTimeout = schemaLimit, schemaLimit
	cluster.Consistency = gocql.LocalQuorum
	session, err := cluster.CreateSession()
	if err != nil {
		return nil, fmt.Errorf("connect to cassandra %s: %w", hosts, err)
	}
	return &database{session}, nil
}

func (d *database) close() {
	if d != nil {
		d.session.Close()
	}
}

func (d *database) exec(ctx context.Context, statement string) error {
	if err := d.session.Query(statement).WithContext(ctx).Exec(); err != nil {
		return fmt.Errorf("cassandra: %s: %w", statement, err)
	}
	return nil
}

func (d *database) drop(ctx context.Context, keyspace string) error {
	return d.exec(ctx, "DROP KEYSPACE IF EXISTS "+keyspace)
}

func createKeyspace(ctx context.Context, s *stage) error {
	return s.database.exec(ctx, "CREATE KEYSPACE "+s.keyspace()+" WITH replication = "+
		s.replication)
}

// createSeen makes the table of the hand-written consumer: one partition for each ID, with the
// compaction that is usual for such tables.
func createSeen(ctx context.Context, s *stage) error {
	if err := createKeyspace(ctx, s); err != nil {
		return err
	}
	return s.database.exec(ctx, "CREATE TABLE "+s.keyspace()+
		".seen (id text PRIMARY KEY, at timestamp)"+
		" WITH default_time_to_live = 604800 AND gc_grace_seconds = 10800"+
		" AND compaction = {'class': 'TimeWindowCompactionStrategy', 'compaction_window_size': "+
		"'1', 'compaction_window_unit': 'DAYS'}")
}

// settle returns when the node that answers compacts nothing: what one contestant left behind must
// not slow the next one down. A server before Cassandra 4 does not tell.
func (d *database) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, settleLimit,
		fmt.Errorf("cassandra has compacted for %v", settleLimit))
	defer cancel()
	for quiet := 0; quiet < 2; {
		iter := d.session.Query("SELECT task_id FROM system_views.sstable_tasks").WithContext(
			ctx).Consistency(gocql.One).Iter()
		tasks := iter.NumRows()
		if err := iter.Close(); err != nil && ctx.Err() == nil {
			return nil // no such table
		}
		if tasks == 0 {
			quiet++
		} else {
			quiet = 0
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(settleEvery):
		}
	}
	return nil
}
