package cassandra

import (
	"context"
	"errors"
	"fmt"
	"sync"

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
	watch   *dedup.Watch

	mu      sync.Mutex
	scopes  map[dedup.Scope]*scopeState
	decided []string // tables that must not be under Accord
}

var _ dedup.Store = (*Store)(nil)

// Open connects and checks that the tables are there. It creates nothing, see Setup. To a server
// that is not Cassandra it adapts, if it must and can. With a nil Registerer there are no metrics.
func Open(ctx context.Context, options Options, reg prometheus.Registerer) (*Store, error) {
	if reg == nil {
		reg = prometheus.NewRegistry()
	}
	s, err := dial(ctx, options)
	if err != nil {
		return nil, err
	}
	if err = s.checkSchema(ctx); err == nil {
		err = s.checkAccord(ctx, s.options.Table)
	}
	if err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("open store: cassandra: %w", err)
	}
	s.metrics = newMetrics(reg, s.limiter)
	return s, nil
}

// dial connects, and looks at the cluster but at no table.
func dial(ctx context.Context, options Options) (*Store, error) {
	levels, err := options.levels()
	if err != nil {
		return nil, fmt.Errorf("open store: cassandra: %w", err)
	}
	session, err := options.connect(options.Keyspace)
	if errors.Is(err, gocql.ErrNoConnectionsStarted) {
		err = options.explainNoConnection(ctx, err)
	}
	if err != nil {
		return nil, fmt.Errorf("open store: cassandra %v: %w", options.Hosts,
			options.explainLocalDC(ctx, err))
	}
	s := &Store{
		session: session, options: options, levels: levels,
		limiter: newLimiter(options.InFlight),
		scopes:  make(map[dedup.Scope]*scopeState),
	}
	if err = s.adapt(ctx); err == nil {
		err = s.checkDataCentres(ctx)
	}
	if err != nil {
		session.Close()
		return nil, fmt.Errorf("open store: cassandra: %w", err)
	}
	s.watch = dedup.NewWatch(watchEvery, s.stillFit)
	return s, nil
}

// Close implements dedup.Store.
func (s *Store) Close() error {
	s.watch.Close()
	s.session.Close()
	return nil
}

// state returns the statements of a scope. They are made on first use, which reads how the scope's
// IDs are hashed. One that is not registered, as that of a self-test, has no key, and is asked for
// each time: it may be registered yet.
func (s *Store) state(ctx context.Context, scope dedup.Scope) (*scopeState, error) {
	if st := s.cached(scope); st != nil {
		return st, nil
	}
	row, found, err := s.registration(ctx, scope)
	if err != nil {
		return nil, err
	}
	if !found {
		return newScopeState(s.options.qualifiedTable(), scope, hasher{}), nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.scopes[scope] == nil {
		s.scopes[scope] = newScopeState(s.options.qualifiedTable(), scope, row.hash)
	}
	return s.scopes[scope], nil
}

func (s *Store) cached(scope dedup.Scope) *scopeState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.scopes[scope]
}

// Lookup implements dedup.Store with a serial read, which completes a claim that is in flight.
func (s *Store) Lookup(ctx context.Context, scope dedup.Scope, id dedup.ID) (dedup.Answer, error) {
	if err := s.watch.Err(); err != nil {
		return dedup.Answer{}, fmt.Errorf("look up an id: cassandra: %w", err)
	}
	st, err := s.state(ctx, scope)
	if err != nil {
		return dedup.Answer{}, fmt.Errorf("look up an id: %w", err)
	}
	bucket := st.bucket(st.hash.sum(id))
	ids := appendIDs([]dedup.Claim{{ID: id}}, []int32{0})
	query := s.session.Query(st.selectIn, bucket, &ids).WithContext(ctx).
		RoutingKey(st.routingKey(bucket)).Consistency(s.levels.read)
	var (
		owner ownerCell
		iter  = query.Iter()
	)
	// message_id, owner, and the TTL that is left in a scope that is sliding
	dest := make([]any, len(iter.Columns()))
	if len(dest) > 1 {
		dest[1] = &owner
	}
	for iter.Scan(dest...) {
	}
	if err := iter.Close(); err != nil {
		return dedup.Answer{}, fmt.Errorf("look up an id: cassandra: %w", err)
	}
	return owner.answer, nil
}

// Release implements dedup.Store with a conditional delete: a plain one could be ordered before
// the claim, whose timestamp is a Paxos ballot.
func (s *Store) Release(ctx context.Context, scope dedup.Scope, id dedup.ID) error {
	st, err := s.state(ctx, scope)
	if err != nil {
		return fmt.Errorf("release an id: %w", err)
	}
	bucket := st.bucket(st.hash.sum(id))
	query := s.conditional(ctx,
		"DELETE FROM "+s.options.qualifiedTable()+" WHERE consumer_group = ? AND topic = ? AND "+
			"bucket = ? AND message_id = ? IF EXISTS",
		scope.ConsumerGroup, scope.Name, bucket, (*blob)(&id)).RoutingKey(st.routingKey(bucket))
	if err := query.Iter().Close(); err != nil {
		return fmt.Errorf("release an id: cassandra: %w", err)
	}
	return nil
}
