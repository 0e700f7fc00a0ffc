package cassandralog

import (
	"context"
	"errors"
	"fmt"

	"github.com/gocql/gocql"

	"github.com/kdedup/kdedup/dedup/cassandra"
	"github.com/kdedup/kdedup/dedup/claimlog"
)

// registry keeps values in a table, a row each, without a TTL. Those of the log itself have keys
// that no other has.
type registry struct {
	logs  *Logs
	group string
}

var _ claimlog.Registry = (*registry)(nil)

// Registry implements claimlog.Opener.
func (l *Logs) Registry(group string) claimlog.Registry { return &registry{l, group} }

// userPrefix parts the keys of those who use the registry from those of the log.
const userPrefix = "of "

// Decide implements claimlog.Registry.
func (r *registry) Decide(ctx context.Context, key string, proposal []byte) ([]byte, error) {
	if err := r.founded(ctx); err != nil {
		return nil, err
	}
	if err := r.propose(ctx, userPrefix+key, proposal); err != nil {
		return nil, err
	}
	stands, err := r.value(ctx, userPrefix+key)
	if err == nil && stands == nil {
		err = fmt.Errorf("%s: the row that was inserted is not there", r.name())
	}
	return stands, err
}

// Decided implements claimlog.Registry.
func (r *registry) Decided(ctx context.Context, key string) ([]byte, error) {
	if err := r.founded(ctx); err != nil {
		return nil, err
	}
	return r.value(ctx, userPrefix+key)
}

// Withdraw implements claimlog.Registry.
func (r *registry) Withdraw(ctx context.Context, key string) error {
	return r.remove(ctx, userPrefix+key)
}

func (r *registry) remove(ctx context.Context, key string) error {
	return r.do(ctx, func(s *cassandra.Session) error {
		return s.Conditional(ctx, "DELETE FROM "+r.table()+
			" WHERE consumer_group = ? AND key = ? IF EXISTS", r.group, key).Iter().Close()
	})
}

// founded refuses the registry of a group that has none.
func (r *registry) founded(ctx context.Context) error {
	text, err := r.value(ctx, foundingKey)
	if err == nil && text == nil {
		err = r.logs.missing(r.group)
	}
	return err
}

func (r *registry) name() string {
	return r.logs.o.Cassandra.Keyspace + "." + r.logs.o.Cassandra.Table + registrySuffix
}

// table is its name in statements.
func (r *registry) table() string {
	return r.logs.o.Cassandra.Quoted(r.logs.o.Cassandra.Table + registrySuffix)
}

func (r *registry) do(ctx context.Context, work func(*cassandra.Session) error) error {
	session, err := r.logs.connect(ctx)
	if err != nil {
		return err
	}
	if err := work(session); err != nil {
		return fmt.Errorf("table %s: %w", r.name(), err)
	}
	return nil
}

// propose has a value stand if none does.
func (r *registry) propose(ctx context.Context, key string, value []byte) error {
	return r.do(ctx, func(s *cassandra.Session) error {
		return s.Conditional(ctx, "INSERT INTO "+r.table()+
			" (consumer_group, key, value) VALUES (?, ?, ?) IF NOT EXISTS",
			r.group, key, value).Iter().Close()
	})
}

// replace puts a value in the place of another one, which still stands, or does nothing.
func (r *registry) replace(ctx context.Context, key string, old, value []byte) error {
	return r.do(ctx, func(s *cassandra.Session) error {
		return s.Conditional(ctx, "UPDATE "+r.table()+
			" SET value = ? WHERE consumer_group = ? AND key = ? IF value = ?",
			value, r.group, key, old).Iter().Close()
	})
}

// value is the one that stands, or nil.
func (r *registry) value(ctx context.Context, key string) ([]byte, error) {
	return r.read(ctx, (*cassandra.Session).Serial, key)
}

// committed is value, and may miss one that is being decided.
func (r *registry) committed(ctx context.Context, key string) ([]byte, error) {
	return r.read(ctx, (*cassandra.Session).Read, key)
}

func (r *registry) read(
	ctx context.Context,
	ask func(*cassandra.Session, context.Context, string, ...any) *gocql.Query, key string,
) (value []byte, err error) {
	err = r.do(ctx, func(s *cassandra.Session) error {
		err := ask(s, ctx, "SELECT value FROM "+r.table()+
			" WHERE consumer_group = ? AND key = ?", r.group, key).Scan(&value)
		if errors.Is(err, gocql.ErrNotFound) {
			return nil
		}
		return err
	})
	return value, err
}
