package cassandra

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gocql/gocql"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/dedup"
)

// Store is a dedup.Store on Cassandra. Any number of processes may share its table.
type Store struct {
	session *gocql.Session
	options Options
	levels  levels
	limiter *limiter
	metrics *metrics

	mu     sync.Mutex
	scopes map[dedup.Scope]*scopeState
}

var _ dedup.Store = (*Store)(nil)

// Open connects and checks that the tables are there. It creates nothing, see Setup. To a server that is not
// Cassandra it adapts, if it must and can. With a nil Registerer there are no metrics.
func Open(ctx context.Context, options Options, reg prometheus.Registerer) (*Store, error) {
	if reg == nil {
		reg = prometheus.NewRegistry()
	}
	levels, err := options.levels()
	if err != nil {
		return nil, fmt.Errorf("open store: cassandra: %w", err)
	}
	session, err := options.connect(options.Keyspace)
	if errors.Is(err, gocql.ErrNoConnectionsStarted) {
		err = options.explainNoConnection(ctx, err)
	}
	if err != nil {
		return nil, fmt.Errorf("open store: cassandra %v: %w", options.Hosts, options.explainLocalDC(ctx, err))
	}
	s := &Store{
		session: session, options: options, levels: levels,
		limiter: newLimiter(options.InFlight),
		scopes:  make(map[dedup.Scope]*scopeState),
	}
	if err = s.adapt(ctx); err == nil {
		err = s.checkDataCentres(ctx)
	}
	if err == nil {
		err = s.checkSchema(ctx)
	}
	if err != nil {
		session.Close()
		return nil, fmt.Errorf("open store: cassandra: %w", err)
	}
	s.metrics = newMetrics(reg, s.limiter)
	return s, nil
}

// Close implements dedup.Store.
func (s *Store) Close() error {
	s.session.Close()
	return nil
}

// state returns the statements of a scope, which are made on first use.
func (s *Store) state(scope dedup.Scope) *scopeState {
	s.mu.Lock()
	defer s.mu.Unlock()
	st, ok := s.scopes[scope]
	if !ok {
		st = newScopeState(s.options.qualifiedTable(), scope)
		s.scopes[scope] = st
	}
	return st
}

// Lookup implements dedup.Store with a serial read, which completes a claim that is in flight.
func (s *Store) Lookup(ctx context.Context, scope dedup.Scope, id dedup.ID) (dedup.Answer, error) {
	st := s.state(scope)
	bucket := st.bucket(hash(id))
	ids := appendIDs([]dedup.Claim{{ID: id}}, []int32{0})
	query := s.session.Query(st.selectIn, bucket, &ids).WithContext(ctx).
		RoutingKey(st.routingKey(bucket)).Consistency(s.levels.read)
	var (
		owner ownerCell
		iter  = query.Iter()
	)
	for iter.Scan(nil, &owner) {
	}
	if err := iter.Close(); err != nil {
		return dedup.Answer{}, fmt.Errorf("look up an id: cassandra: %w", err)
	}
	return owner.answer, nil
}

// Release implements dedup.Store with a conditional delete: a plain one could be ordered before
// the claim, whose timestamp is a Paxos ballot.
func (s *Store) Release(ctx context.Context, scope dedup.Scope, id dedup.ID) error {
	st := s.state(scope)
	bucket := st.bucket(hash(id))
	query := s.conditional(ctx,
		"DELETE FROM "+s.options.qualifiedTable()+" WHERE consumer_group = ? AND topic = ? AND bucket = ? AND message_id = ? IF EXISTS",
		scope.ConsumerGroup, scope.Name, bucket, (*blob)(&id)).RoutingKey(st.routingKey(bucket))
	if err := query.Iter().Close(); err != nil {
		return fmt.Errorf("release an id: cassandra: %w", err)
	}
	return nil
}

// Register implements dedup.Store by a row of dedup_scopes that is inserted once.
func (s *Store) Register(ctx context.Context, scope dedup.Scope) error {
	const attempts = 5
	var err error
	for n := range attempts {
		if n > 0 {
			if err := pause(ctx, time.Duration(n)*200*time.Millisecond); err != nil {
				return err
			}
		}
		if err = s.register(ctx, scope); err == nil || errors.Is(err, dedup.ErrScopeMismatch) {
			return err
		}
	}
	return err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Store) register(ctx context.Context, scope dedup.Scope) error {
	query := s.conditional(ctx,
		"INSERT INTO "+s.options.scopesTable()+" (consumer_group, topic, buckets, extractor) VALUES (?, ?, ?, ?) IF NOT EXISTS",
		scope.ConsumerGroup, scope.Name, scope.Buckets, scope.Extractor)
	if err := query.Iter().Close(); err != nil {
		return fmt.Errorf("register scope %s/%s: cassandra: %w", scope.ConsumerGroup, scope.Name, err)
	}
	registered, found, err := s.Registered(ctx, scope)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("register scope %s/%s: cassandra: the row that was inserted is not there", scope.ConsumerGroup, scope.Name)
	}
	return dedup.CompareScopes(scope, registered)
}

// Registered implements dedup.Store with a serial read.
func (s *Store) Registered(ctx context.Context, scope dedup.Scope) (registered dedup.Scope, found bool, err error) {
	registered = dedup.Scope{ConsumerGroup: scope.ConsumerGroup, Name: scope.Name}
	err = s.session.Query("SELECT buckets, extractor FROM "+s.options.scopesTable()+" WHERE consumer_group = ? AND topic = ?",
		scope.ConsumerGroup, scope.Name).WithContext(ctx).Consistency(s.levels.read).
		Scan(&registered.Buckets, &registered.Extractor)
	if errors.Is(err, gocql.ErrNotFound) {
		return dedup.Scope{}, false, nil
	}
	if err != nil {
		return dedup.Scope{}, false, fmt.Errorf("read scope %s/%s: cassandra: %w", scope.ConsumerGroup, scope.Name, err)
	}
	return registered, true, nil
}

// Forget implements dedup.Store. It deletes bucket by bucket, without conditions: nobody else writes
// to the scope.
func (s *Store) Forget(ctx context.Context, scope dedup.Scope) error {
	partition := "DELETE FROM " + s.options.qualifiedTable() + " WHERE consumer_group = ? AND topic = ? AND bucket = ?"
	for bucket := range int32(scope.Buckets) {
		if err := s.session.Query(partition, scope.ConsumerGroup, scope.Name, bucket).WithContext(ctx).Exec(); err != nil {
			return fmt.Errorf("forget scope %s/%s: cassandra: %w", scope.ConsumerGroup, scope.Name, err)
		}
	}
	err := s.conditional(ctx, "DELETE FROM "+s.options.scopesTable()+" WHERE consumer_group = ? AND topic = ? IF EXISTS",
		scope.ConsumerGroup, scope.Name).Iter().Close()
	if err != nil {
		return fmt.Errorf("forget scope %s/%s: cassandra: %w", scope.ConsumerGroup, scope.Name, err)
	}
	return nil
}
