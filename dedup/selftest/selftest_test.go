package selftest_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/cassandra"
	"github.com/kdedup/kdedup/dedup/memory"
	"github.com/kdedup/kdedup/dedup/selftest"
	"github.com/kdedup/kdedup/internal/testkit/cqltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var allSteps = []string{
	selftest.First, selftest.Again, selftest.Other, selftest.Conflict, selftest.Batch,
	selftest.Repeat, selftest.LookUp,
	selftest.Expiry, selftest.Renewal, selftest.CleanUp,
}

// wantSteps checks that the steps end with the given one, whose result begins with got, and that
// all before are passed.
func wantSteps(t *testing.T, steps []selftest.Step, last, got string) {
	t.Helper()
	for i, s := range steps {
		failed := i == len(steps)-1 && last != ""
		if s.Name != allSteps[i] || s.Passed == failed {
			t.Errorf("step %d: %+v", i, s)
		}
		if s.Passed && !strings.HasPrefix(s.Got, s.Expected) {
			t.Errorf("%s: got %q, expected %q, and passed", s.Name, s.Got, s.Expected)
		}
	}
	end := steps[len(steps)-1]
	if last == "" {
		last = selftest.CleanUp
	}
	if end.Name != last || !strings.Contains(end.Got, got) {
		t.Errorf("the last step is %q with %q, want %q with %q", end.Name, end.Got, last, got)
	}
}

// broken is a store with some methods replaced.
type broken struct {
	dedup.Store
	claim func(ctx context.Context, next dedup.Store, scope dedup.Scope,
		claims []dedup.Claim) ([]dedup.Answer, error)
	lookup  func(next dedup.Answer) (dedup.Answer, error)
	release func() error
}

func (b *broken) Claim(
	ctx context.Context, scope dedup.Scope, claims []dedup.Claim,
) ([]dedup.Answer, error) {
	if b.claim == nil {
		return b.Store.Claim(ctx, scope, claims)
	}
	return b.claim(ctx, b.Store, scope, claims)
}

func (b *broken) Lookup(ctx context.Context, scope dedup.Scope, id dedup.ID) (dedup.Answer, error) {
	got, err := b.Store.Lookup(ctx, scope, id)
	if b.lookup == nil || err != nil {
		return got, err
	}
	return b.lookup(got)
}

func (b *broken) Release(ctx context.Context, scope dedup.Scope, id dedup.ID) error {
	if b.release == nil {
		return b.Store.Release(ctx, scope, id)
	}
	return b.release()
}

// changed replaces each answer.
func changed(change func(c dedup.Claim, a dedup.Answer) dedup.Answer) *broken {
	return &broken{claim: func(ctx context.Context, next dedup.Store, scope dedup.Scope,
		claims []dedup.Claim) ([]dedup.Answer, error) {
		answers, err := next.Claim(ctx, scope, claims)
		for i := range answers {
			answers[i] = change(claims[i], answers[i])
		}
		return answers, err
	}}
}

// failing returns an error for the first calls that have a number of claims.
func failing(calls, claims int) *broken {
	return &broken{claim: func(ctx context.Context, next dedup.Store, scope dedup.Scope,
		asked []dedup.Claim) ([]dedup.Answer, error) {
		if len(asked) >= claims && calls > 0 {
			calls--
			return make([]dedup.Answer, len(asked)), errors.New("no conditions in batches")
		}
		return next.Claim(ctx, scope, asked)
	}}
}

func TestEachBrokenPromiseFailsItsStep(t *testing.T) {
	frozen := time.Now()
	for _, c := range []struct {
		name  string
		store *broken
		clock func() time.Time
		step  string // "": all are passed
		got   string
	}{
		{"a store that keeps the contract", &broken{}, nil, "", "nothing is left"},
		{"one that has no answer at first", failing(2, 1), nil, "", "nothing is left"},
		{"one that has none at all", failing(100, 1), nil, selftest.First,
			"no conditions in batches"},
		{"every claim is applied", changed(func(c dedup.Claim, a dedup.Answer) dedup.Answer {
			return dedup.Answer{Outcome: dedup.Applied, Owner: c.Owner, Fingerprint: c.Fingerprint}
		}), nil, selftest.Again, "applied"},
		{"the owner is not returned", changed(func(_ dedup.Claim, a dedup.Answer) dedup.Answer {
			a.Owner = dedup.Coordinates{}
			return a
		}), nil, selftest.Again, "a record is returned that does not own the ID"},
		{"every claimant is called the owner",
			changed(func(c dedup.Claim, a dedup.Answer) dedup.Answer {
				a.Owner, a.Fingerprint = c.Owner, c.Fingerprint
				return a
			}), nil, selftest.Other, "refused: it owns the ID already"},
		{"the content is that of the asking record",
			changed(func(c dedup.Claim, a dedup.Answer) dedup.Answer {
				a.Fingerprint = c.Fingerprint
				return a
			}), nil, selftest.Conflict, "does not own the ID"},
		{"batches are refused", failing(100, 2), nil, selftest.Batch, "no conditions in batches"},
		{"a batch is applied in part, and that is told as refused", &broken{
			claim: func(ctx context.Context, next dedup.Store, scope dedup.Scope,
				claims []dedup.Claim) ([]dedup.Answer, error) {
				answers, err := next.Claim(ctx, scope, claims)
				if err == nil && len(claims) > 1 {
					answers, err = next.Claim(ctx, scope, claims)
				}
				return answers, err
			},
		}, nil, selftest.Batch, "order-2 refused: it owns the ID already; order-3 refused"},
		{"a look-up finds nobody", &broken{lookup: func(dedup.Answer) (dedup.Answer, error) {
			return dedup.Answer{}, nil
		}},
			nil, selftest.LookUp, "nobody is found"},
		{"a look-up is not possible", &broken{lookup: func(dedup.Answer) (dedup.Answer, error) {
			return dedup.Answer{}, errors.New("no serial reads")
		}},
			nil, selftest.LookUp, "no serial reads"},
		{"a look-up finds anybody", &broken{lookup: func(a dedup.Answer) (dedup.Answer, error) {
			a.Outcome = dedup.Exists
			return a, nil
		}}, nil, selftest.LookUp, "somebody is found"},
		{"claims never end", &broken{}, func() time.Time { return frozen },
			selftest.Expiry, "still refused after 15s"},
		{"copies renew nothing", &broken{
			claim: func(ctx context.Context, next dedup.Store, scope dedup.Scope,
				claims []dedup.Claim) ([]dedup.Answer, error) {
				scope.Sliding = false
				return next.Claim(ctx, scope, claims)
			},
		}, nil, selftest.Renewal, "applied after 3.0 s, with a ttl of 3s and copies all the time"},
		{"a release does nothing", &broken{release: func() error { return nil }},
			nil, selftest.CleanUp, "is still owned"},
		{"a release is refused", &broken{release: func() error {
			return errors.New("no right to delete")
		}}, nil, selftest.CleanUp, "no right to delete"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.store.Store = memory.New(memory.Options{Now: c.clock, Violation: t.Errorf})
				start := time.Now()
				wantSteps(t, selftest.Run(t.Context(), c.store, "self-test", true), c.step, c.got)
				if took := time.Since(start); took > 40*time.Second {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

func TestRenewalsAreAskedForWhereTheyAreUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steps := selftest.Run(t.Context(), memory.New(memory.Options{}), "self-test", false)
		for _, s := range steps {
			if !s.Passed || s.Name == selftest.Renewal {
				t.Errorf("%+v", s)
			}
		}
		if len(steps) != len(allSteps)-1 {
			t.Errorf("%d steps, want %d", len(steps), len(allSteps)-1)
		}
	})
}

func TestItEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	steps := selftest.Run(ctx, memory.New(memory.Options{}), "self-test", true)
	wantSteps(t, steps, selftest.First, context.Canceled.Error())
}

// What compatible servers document, through the store and its driver.
func TestOnServersThatAnswerAsDocumented(t *testing.T) {
	unnamed := cqltest.Keyspaces
	unnamed.ClusterName = "other"
	for _, c := range []struct {
		name      string
		dialect   cqltest.Dialect
		step, got string
	}{
		{"Cassandra", cqltest.Dialect{}, "", ""},
		{"ScyllaDB", cqltest.ScyllaDB, "", ""},
		{"ScyllaDB before 2025.4, with tablets", cqltest.ScyllaTablets, selftest.First,
			"LWT is not yet supported with tablets"},
		{"Amazon Keyspaces", cqltest.Keyspaces, "", ""},
		{"no serial levels, and another name", unnamed, selftest.First,
			"is not supported for this operation"},
		{"no conditions in batches", cqltest.Dialect{UnconditionalBatches: true}, selftest.Batch,
			"Only unconditional statements"},
		{"Azure Cosmos DB", cqltest.CosmosDB, selftest.Expiry, "still refused after 15s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			server := cqltest.Start(t, c.dialect)
			steps := selftest.Run(t.Context(), openCassandra(t, server.Addr()), "self-test", true)
			wantSteps(t, steps, c.step, c.got)
			if rows := server.Rows(); rows > 0 {
				t.Errorf("%d rows are left", rows)
			}
		})
	}
}

func openCassandra(t *testing.T, addr string) dedup.Store {
	t.Helper()
	options := cassandra.Options{
		Hosts: []string{addr}, Keyspace: "kdedup", Table: "processed_messages",
		Consistency: "LOCAL_QUORUM", SerialConsistency: "LOCAL_SERIAL",
		Timeout: 20 * time.Second, Connections: 2, InFlight: 64, BatchClaims: 200,
		Logger: slog.New(slog.DiscardHandler),
	}
	if err := cassandra.Setup(
		t.Context(), options, "{'class': 'SimpleStrategy', 'replication_factor': 1}", false,
		func(string) {},
	); err != nil {
		t.Fatal(err)
	}
	store, err := cassandra.Open(t.Context(), options, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}
