package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/kdedup/kdedup/dedup"
)

var _ dedup.Mover = (*Store)(nil)

// Export implements dedup.Exporter in the order of the IDs, so that each statement begins where the
// one before ended.
func (s *Store) Export(
	ctx context.Context, scope dedup.Scope, page func([]dedup.Standing) error,
) error {
	for behind, more := []byte(nil), true; more; {
		var (
			told []dedup.Standing
			rows int
		)
		err := s.insist(ctx, func(ctx context.Context) (err error) {
			var last []byte
			told, rows, last, err = s.page(ctx, scope, behind)
			if err == nil { // else it is read again
				behind = last
			}
			return err
		})
		if err == nil && len(told) > 0 {
			err = page(told)
		}
		if err != nil {
			return fmt.Errorf("export claims of scope %s/%s: postgres: %w", scope.ConsumerGroup,
				scope.Name, explain(ctx, err))
		}
		more = rows == dedup.StandingPage
	}
	return nil
}

// page reads the rows behind an ID, and returns the last one's. However many have expired, it reads
// no more: the statement ends in time.
func (s *Store) page(
	ctx context.Context, scope dedup.Scope, behind []byte,
) (told []dedup.Standing, count int, last []byte, err error) {
	last = behind
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, inIndexOrder); err != nil {
			return err
		}
		now := time.Now()
		rows, err := tx.Query(ctx, s.sql.page, execMode, scopeKey(scope), append([]byte{},
			behind...), dedup.StandingPage)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			count++
			claim, left, err := scanStanding(rows, now)
			if err != nil {
				return err
			}
			last = []byte(claim.ID)
			switch {
			case left <= 0:
			case len(claim.ID) >= keyBytes:
				return fmt.Errorf("%w: PostgreSQL has such an ID of %d bytes or more; go on with "+
					"this store until they have ended", dedup.ErrLongIDs, keyBytes)
			default:
				told = append(told, claim)
			}
		}
		return rows.Err()
	})
	return told, count, last, err
}

// scanStanding reads a row of message_id, ownerColumns and the seconds that are left.
func scanStanding(row pgx.Rows, now time.Time) (claim dedup.Standing, left float64, err error) {
	key, answer, err := scanOwner(row, &left)
	return dedup.Standing{
		ID: dedup.ID(key), Owner: answer.Owner, Fingerprint: answer.Fingerprint,
		ClaimedAt: answer.ClaimedAt, Ends: now.Add(time.Duration(left * float64(time.Second))),
	}, left, err
}

// Find implements dedup.Exporter.
func (s *Store) Find(
	ctx context.Context, scope dedup.Scope, ids []dedup.ID,
) ([]dedup.Standing, error) {
	var found []dedup.Standing
	err := s.insist(ctx, func(ctx context.Context) (err error) {
		found, err = s.find(ctx, scope, ids)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find %d claims: postgres: %w", len(ids), explain(ctx, err))
	}
	return found, nil
}

func (s *Store) find(
	ctx context.Context, scope dedup.Scope, ids []dedup.ID,
) (found []dedup.Standing, err error) {
	keys, byKey := make([][]byte, len(ids)), make(map[string]dedup.ID, len(ids))
	for i, id := range ids {
		keys[i] = keyOf(id)
		byKey[string(keys[i])] = id
	}
	now := time.Now()
	rows, err := s.pool.Query(ctx, s.sql.find, execMode, scopeKey(scope), keys)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		claim, _, err := scanStanding(rows, now)
		if err != nil {
			return nil, err
		}
		claim.ID = byKey[string(claim.ID)]
		found = append(found, claim)
	}
	return found, rows.Err()
}

// Import implements dedup.Importer. As with Claim, the batches run side by side.
func (s *Store) Import(
	ctx context.Context, scope dedup.Scope, claims []dedup.Standing,
) ([]dedup.Answer, error) {
	asked := make([]dedup.Claim, len(claims))
	for i := range claims {
		asked[i] = dedup.Claim{ID: claims[i].ID, Owner: claims[i].Owner,
			Fingerprint: claims[i].Fingerprint}
	}
	scope.Sliding = false // it renews nothing
	c := newCall(s.pool, s.sql, scope, asked)
	c.run, c.standing = s.insist, claims
	now := time.Now()
	living := slices.DeleteFunc(inOrder(c.keys), func(i int32) bool {
		return claims[i].Left(now) <= 0
	})
	var batches errgroup.Group
	for batch := range slices.Chunk(living, s.options.BatchClaims) {
		batches.Go(func() error {
			return c.decide(ctx, batch)
		})
	}
	if err := batches.Wait(); err != nil {
		return c.answers, fmt.Errorf("import %d claims: postgres: %w", len(claims),
			explain(ctx, err))
	}
	return c.answers, nil
}

// times are the columns of when the claims were made, and how many seconds of them are left.
func (c *call) times(open []int32) []any {
	claimed, left := make([]time.Time, len(open)), make([]float64, len(open))
	now := time.Now()
	for at, i := range open {
		claimed[at], left[at] = c.standing[i].ClaimedAt, c.standing[i].Left(now).Seconds()
	}
	return []any{claimed, left}
}
