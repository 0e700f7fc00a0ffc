package cassandralog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/kdedup/kdedup/dedup/cassandra"
	"github.com/kdedup/kdedup/dedup/claimlog"
)

// Options say where the tables are.
type Options struct {
	Cassandra cassandra.Options // Table is the name of that with the blocks
	Logger    *slog.Logger      // nil: nothing is logged

	now func() time.Time // nil: time.Now
}

// Logs leads to the logs of all groups in a keyspace. All share one connection, which is made when
// it is first needed.
type Logs struct {
	o Options

	mu      sync.Mutex
	session *cassandra.Session
	closed  bool
}

var _ claimlog.Opener = (*Logs)(nil)

// New connects to nothing yet.
func New(o Options) *Logs {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.now == nil {
		o.now = time.Now
	}
	return &Logs{o: o}
}

// Close implements claimlog.Opener.
func (l *Logs) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.session != nil {
		l.session.Close()
		l.session = nil
	}
	return nil
}

var errClosed = errors.New("the claim log is closed")

// connect returns the connection, whose tables are as they must be.
func (l *Logs) connect(ctx context.Context) (*cassandra.Session, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errClosed
	}
	if l.session != nil {
		return l.session, nil
	}
	session, err := cassandra.Connect(ctx, l.o.Cassandra)
	if err != nil {
		return nil, err
	}
	for _, t := range l.tables() {
		if err := session.CheckTable(ctx, t.name, t.columns); err != nil {
			session.Close()
			return nil, fmt.Errorf("open store: cassandra: %w", err)
		}
	}
	l.session = session
	return session, nil
}

// Open implements claimlog.Opener.
func (l *Logs) Open(ctx context.Context, group string) (claimlog.Log, error) {
	session, err := l.connect(ctx)
	if err != nil {
		return nil, err
	}
	t := &tableLog{
		group: group, session: session, say: l.o.Logger, now: l.o.now,
		statements: l.statements(), registry: &registry{logs: l, group: group},
		limit: l.o.Cassandra.Timeout,
	}
	if err := t.describe(ctx); err != nil {
		return nil, fmt.Errorf("open claim log: %w", err)
	}
	return t, nil
}

// CheckRights returns an error for each table on which the user lacks a right.
func (l *Logs) CheckRights(ctx context.Context) error {
	session, err := l.connect(ctx)
	if err != nil {
		return err
	}
	const nobody = "consumer_group = '' AND "
	return session.CheckRights(ctx, map[string]string{
		l.o.Cassandra.Table: nobody + "log = 00000000-0000-0000-0000-000000000000 AND " +
			"shard = -1 AND slice = -1 AND seq = -1",
		l.o.Cassandra.Table + registrySuffix: nobody + "key = ''",
	})
}

// Check refuses the log of a group that is not as it must be. It changes nothing, and reads no
// claim.
func (l *Logs) Check(ctx context.Context, group string) error {
	log, err := l.Open(ctx, group)
	if err != nil {
		return err
	}
	if err := log.Close(); err != nil {
		return err
	}
	_, err = l.Registry(group).Decided(ctx, "log")
	return err
}
