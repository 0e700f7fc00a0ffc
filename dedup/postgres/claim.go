package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/crashpoint"
	"github.com/kdedup/kdedup/internal/pause"
)

// Claim implements dedup.Store. The batches of a call run side by side, as many as there are
// connections.
func (s *Store) Claim(
	ctx context.Context, scope dedup.Scope, claims []dedup.Claim,
) ([]dedup.Answer, error) {
	if err := s.watch.Err(); err != nil {
		return make([]dedup.Answer, len(claims)),
			fmt.Errorf("claim %d ids: postgres: %w", len(claims), err)
	}
	c := newCall(s.pool, s.sql, scope, claims)
	c.run = s.insist
	var batches errgroup.Group
	for batch := range slices.Chunk(inOrder(c.keys), s.options.BatchClaims) {
		batches.Go(func() error {
			return c.decide(ctx, batch)
		})
	}
	if err := batches.Wait(); err != nil {
		return c.answers, fmt.Errorf("claim %d ids: postgres: %w", len(claims), explain(ctx, err))
	}
	return c.answers, nil
}

// queryer is a pool or a transaction.
type queryer interface {
	Query(ctx context.Context, sql string, arguments ...any) (pgx.Rows, error)
}

// call is one call of Claim. Its batches write different answers.
type call struct {
	db        queryer
	run       func(ctx context.Context, statement func(context.Context) error) error
	sql       statements
	space     dedup.Scope
	scope     int64 // that stands for it
	claims    []dedup.Claim
	standing  []dedup.Standing // of which the claims are, if another store has made them
	keys      [][]byte
	answers   []dedup.Answer
	claimedAt time.Time
}

func newCall(db queryer, sql statements, scope dedup.Scope, claims []dedup.Claim) *call {
	return &call{
		db: db, sql: sql, space: scope, scope: scopeKey(scope),
		claims: claims, keys: keysOf(claims), answers: make([]dedup.Answer, len(claims)),
		claimedAt: dedup.ClaimTime(claims, time.Now()),
	}
}

// rounds bounds what decide tries. The primary's own answers hardly ever take a third round.
const rounds = 8

// decide claims what is open and asks for the owners of the rest, until nothing is open. Another
// round is needed only for claims that were there when the INSERT looked and had ended, by
// expiry or release, when the SELECT did, or when a copy would renew them; or if something sends
// the SELECT to a standby that lags.
func (c *call) decide(ctx context.Context, open []int32) error {
	claim, takeOver := c.sql.insert, c.sql.takeOver
	if c.standing != nil {
		claim, takeOver = c.sql.insertStanding, c.sql.takeOverStanding
	}
	for round := 1; round <= rounds; round++ {
		if round > 2 && !pause.For(ctx, backoff(round)) {
			return context.Cause(ctx)
		}
		if err := c.run(ctx, func(ctx context.Context) error {
			return c.write(ctx, open, claim)
		}); err != nil {
			return err
		}
		crashpoint.At("rows-inserted")
		if open = c.undecided(open); len(open) == 0 {
			return nil
		}
		if err := c.run(ctx, func(ctx context.Context) error {
			return c.read(ctx, open)
		}); err != nil {
			return err
		}
		if err := c.renew(ctx, open); err != nil {
			return err
		}
		if open = c.undecided(open); len(open) == 0 {
			return nil
		}
		claim = takeOver
	}
	return fmt.Errorf("%w: %d of %d", errOwnersUnseen, len(open), len(c.claims))
}

// errOwnersUnseen leaves claims undecided: the next attempt may find the standby less behind.
var errOwnersUnseen = errors.New("ids are taken, and their owners cannot be read: a proxy sends " +
	"reads to a standby that lags; " +
	"let all statements go to the primary")

// backoff is the pause before the n-th attempt.
func backoff(n int) time.Duration { return rand.N(firstPause << min(n, 5)) }

// undecided keeps the order.
func (c *call) undecided(of []int32) []int32 {
	var open []int32
	for _, i := range of {
		if c.answers[i].Outcome == dedup.Undecided {
			open = append(open, i)
		}
	}
	return open
}

const (
	attempts   = 10 // of a statement that the server undoes
	firstPause = 10 * time.Millisecond
)

// insist runs a statement and repeats it while the server undoes it for the sake of another
// transaction: no two claims do that to each other, but somebody else's statements may.
func (s *Store) insist(ctx context.Context, statement func(context.Context) error) error {
	for n := 1; ; n++ {
		err := s.timed(ctx, statement)
		if !isNotApplied(err) || n == attempts {
			return err
		}
		s.metrics.retries.Inc()
		if !pause.For(ctx, backoff(n)) {
			return context.Cause(ctx)
		}
	}
}

// timed bounds a statement and measures it.
func (s *Store) timed(ctx context.Context, run func(context.Context) error) error {
	start := time.Now()
	defer func() { s.metrics.seconds.Observe(time.Since(start).Seconds()) }()
	return s.bounded(ctx, run)
}

// write sends the claims. None of them counts before the statement has ended well: the rows arrive
// before its transaction is committed.
func (c *call) write(ctx context.Context, open []int32, sql string) error {
	rows, err := c.db.Query(ctx, sql, c.arguments(open)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	applied := make([]int32, 0, len(open))
	for rows.Next() {
		i, err := c.find(open, rows.RawValues()[0])
		if err != nil {
			return err
		}
		applied = append(applied, i)
	}
	if rows.Close(); rows.Err() != nil {
		return rows.Err()
	}
	for _, i := range applied {
		c.answers[i] = dedup.Answer{
			Outcome: dedup.Applied, Owner: c.claims[i].Owner, Fingerprint: c.claims[i].Fingerprint,
			ClaimedAt: c.claimTime(i),
		}
	}
	return nil
}

func (c *call) claimTime(i int32) time.Time {
	if c.standing != nil {
		return c.standing[i].ClaimedAt
	}
	return c.claimedAt
}

// execMode prepares no statement under a name, and gets binary answers. It is given with each
// statement because the connection of a caller's transaction may have another one.
const execMode = pgx.QueryExecModeCacheDescribe

// arguments are the claims column by column, behind the mode.
func (c *call) arguments(open []int32) []any {
	var (
		n            = len(open)
		keys         = make([][]byte, n)
		topics       = make([][16]byte, n)
		partitions   = make([]int32, n)
		offsets      = make([]int64, n)
		epochs       = make([]int32, n)
		fingerprints = make([][]byte, n)
	)
	for at, i := range open {
		claim := &c.claims[i]
		keys[at] = c.keys[i]
		topics[at], partitions[at] = claim.Owner.TopicID, claim.Owner.Partition
		offsets[at], epochs[at] = claim.Owner.Offset, claim.Owner.LeaderEpoch
		fingerprints[at] = claim.Fingerprint[:]
	}
	arguments := []any{execMode, c.scope, keys, topics, partitions, offsets, epochs, fingerprints}
	if c.standing == nil {
		return append(arguments, c.claimedAt, c.space.TTL.Seconds())
	}
	return append(arguments, c.times(open)...)
}

// read takes the owners that are there.
func (c *call) read(ctx context.Context, open []int32) error {
	keys := make([][]byte, len(open))
	for at, i := range open {
		keys[at] = c.keys[i]
	}
	var left float64 // in seconds
	sql, more := c.sql.read, []any(nil)
	if c.space.Sliding {
		sql, more = c.sql.find, []any{&left}
	}
	rows, err := c.db.Query(ctx, sql, execMode, c.scope, keys)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		key, answer, err := scanOwner(rows, more...)
		if err != nil {
			return err
		}
		i, err := c.find(open, key)
		if err != nil {
			return err
		}
		c.answers[i] = answer
		if c.claims[i].Renews(c.space, answer.Owner) &&
			time.Duration(left*float64(time.Second)) <= c.space.DueAt() {
			c.answers[i].Outcome = dedup.Undecided // until it is renewed
		}
	}
	return rows.Err()
}

// find returns the claim with the key; open is in the order of the keys.
func (c *call) find(open []int32, key []byte) (int32, error) {
	at, found := slices.BinarySearchFunc(open, key, func(i int32, key []byte) int {
		return bytes.Compare(c.keys[i], key)
	})
	if !found {
		return 0, fmt.Errorf("the server answered for an id that it was not asked for: %x", key)
	}
	return open[at], nil
}

// scanOwner reads a row of message_id and ownerColumns, and what comes behind them.
func scanOwner(row pgx.Row, more ...any) (key []byte, answer dedup.Answer, err error) {
	var fingerprint []byte
	err = row.Scan(append([]any{&key, &answer.Owner.TopicID, &answer.Owner.Partition,
		&answer.Owner.Offset, &answer.Owner.LeaderEpoch, &fingerprint, &answer.ClaimedAt},
		more...)...)
	if err != nil {
		return nil, dedup.Answer{}, err
	}
	if len(fingerprint) != len(answer.Fingerprint) {
		return nil, dedup.Answer{},
			fmt.Errorf("a fingerprint has %d bytes, want %d: who wrote that row?", len(fingerprint),
				len(answer.Fingerprint))
	}
	copy(answer.Fingerprint[:], fingerprint)
	answer.Outcome = dedup.Exists
	return key, answer, nil
}
