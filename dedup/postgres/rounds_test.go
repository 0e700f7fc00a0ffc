package postgres

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kdedup/kdedup/dedup"
)

// stale answers as a proxy does that sends the INSERT to the primary and the SELECT to a standby.
type stale struct{ statements int }

func (s *stale) Query(context.Context, string, ...any) (pgx.Rows, error) {
	s.statements++
	return noRows{}, nil
}

type noRows struct{ pgx.Rows }

func (noRows) Next() bool { return false }
func (noRows) Close()     {}
func (noRows) Err() error { return nil }

func TestOwnersThatCannotBeReadEndACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &stale{}
		c := newCall(db, newStatements("claims"), dedup.Scope{TTL: time.Hour},
			[]dedup.Claim{{ID: "a"}, {ID: "b"}})
		c.run = func(ctx context.Context, statement func(context.Context) error) error {
			return statement(ctx)
		}
		start := time.Now()
		err := c.decide(t.Context(), inOrder(c.keys))
		if !errors.Is(err, errOwnersUnseen) || c.answers[0].Outcome != dedup.Undecided {
			t.Errorf("got %v, %v", err, c.answers)
		}
		if db.statements != 2*rounds || time.Since(start) == 0 ||
			time.Since(start) > 2*time.Second {
			t.Errorf("%d statements in %v", db.statements, time.Since(start))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := c.decide(ctx, inOrder(c.keys)); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}
