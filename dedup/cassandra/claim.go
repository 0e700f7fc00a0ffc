package cassandra

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/crashpoint"
)

// Claim implements dedup.Store. The claims of each bucket are one sequence of conditional batches;
// buckets proceed side by side, as many as the limiter admits.
func (s *Store) Claim(
	ctx context.Context, scope dedup.Scope, claims []dedup.Claim,
) ([]dedup.Answer, error) {
	answers := make([]dedup.Answer, len(claims))
	if err := s.watch.Err(); err != nil {
		return answers, fmt.Errorf("claim %d ids: cassandra: %w", len(claims), err)
	}
	st, err := s.state(ctx, scope)
	if err != nil {
		return answers, fmt.Errorf("claim %d ids: %w", len(claims), err)
	}
	hashes, left := st.hashes(claims), unreadOf(scope, claims)
	var buckets errgroup.Group
	for bucket, members := range groupByBucket(st, hashes) {
		buckets.Go(func() error {
			round := round{store: s, scope: st, bucket: bucket, claims: claims, hashes: hashes,
				answers: answers, left: left}
			return round.run(ctx, members)
		})
	}
	if err := buckets.Wait(); err != nil {
		return answers, fmt.Errorf("claim %d ids: cassandra: %w", len(claims), err)
	}
	return answers, nil
}

func (s *scopeState) hashes(claims []dedup.Claim) []uint64 {
	hashes := make([]uint64, len(claims))
	for i := range claims {
		hashes[i] = s.hash.sum(claims[i].ID)
	}
	return hashes
}

// groupByBucket maps every bucket that is hit to the indexes of its claims.
func groupByBucket(st *scopeState, hashes []uint64) map[int32][]int32 {
	groups := make(map[int32][]int32, min(st.scope.Buckets, len(hashes)))
	for i, h := range hashes {
		bucket := st.bucket(h)
		groups[bucket] = append(groups[bucket], int32(i))
	}
	return groups
}

// round decides the claims of one bucket for one call of Claim. It writes only its own answers.
type round struct {
	store  *Store
	scope  *scopeState
	bucket int32
	claims []dedup.Claim
	// of which the claims are, if another store has made them; of others there is none
	standing []dedup.Standing
	hashes   []uint64 // of the IDs
	answers  []dedup.Answer
	left     []int // seconds of the claims that were read; unread, or nil in most scopes
}

// run decides the members chunk by chunk. One batch per bucket is in flight in this process:
// two would only compete for the same Paxos ballot.
func (r *round) run(ctx context.Context, members []int32) error {
	lock := r.scope.locks[int(r.bucket)%len(r.scope.locks)]
	select {
	case lock <- struct{}{}:
		defer func() { <-lock }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for len(members) > 0 {
		chunk := members[:min(len(members), r.store.options.BatchClaims)]
		members = members[len(chunk):]
		err := r.decide(ctx, chunk)
		if r.left != nil {
			err = r.renew(ctx, chunk, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// decide reads what would spoil the batch, and then repeats batch and answer until nothing of the
// chunk is open. A batch that does not apply names at least one existing row, so it ends.
func (r *round) decide(ctx context.Context, chunk []int32) error {
	suspects, others := r.scope.suspects.split(r.hashes, chunk)
	open := chunk
	if doubtful := r.doubtful(chunk, suspects); len(doubtful) > 0 {
		if err := r.request(ctx, doubtful, r.read); err != nil {
			return err
		}
		open = r.undecided(chunk)
	}
	for len(open) > 0 {
		if err := r.request(ctx, open, r.insert); err != nil {
			return err
		}
		crashpoint.At("bucket-claimed")
		left := r.undecided(open)
		if len(left) == len(open) {
			return errors.New("the store refused a batch and named no existing row")
		}
		open = left
	}
	r.scope.suspects.note(r.hashes, others)
	r.scope.ratio.observe(r.existing(others), len(others))
	return nil
}

// doubtful are the claims to read before the batch: the suspects, or all if the others alone would
// most likely spoil it.
func (r *round) doubtful(chunk, suspects []int32) []int32 {
	if r.scope.ratio.readFirst(len(chunk) - len(suspects)) {
		return chunk
	}
	return suspects
}

func (r *round) existing(of []int32) (n int) {
	for _, i := range of {
		if r.answers[i].Outcome == dedup.Exists {
			n++
		}
	}
	return n
}

func (r *round) undecided(of []int32) []int32 {
	var open []int32
	for _, i := range of {
		if r.answers[i].Outcome == dedup.Undecided {
			open = append(open, i)
		}
	}
	return open
}

// request runs one statement in its place of the limiter.
func (r *round) request(
	ctx context.Context, open []int32, statement func(context.Context, []int32) error,
) error {
	epoch, err := r.store.limiter.acquire(ctx)
	if err != nil {
		return err
	}
	r.store.metrics.requests.Inc()
	start := time.Now()
	err = statement(ctx, open)
	r.store.metrics.seconds.Observe(time.Since(start).Seconds())
	if err != nil && isOverload(err) {
		r.store.metrics.overloads.Inc()
		r.store.limiter.overloaded(epoch)
		return err
	}
	r.store.limiter.release()
	return err
}

// insert sends the conditional batch for the open claims and takes the answers that it gives.
func (r *round) insert(ctx context.Context, open []int32) error {
	size := paddedSize(len(open))
	now := time.Now()
	rows := borrowRows(r.bucket, size)
	defer rows.giveBack()
	for i := range size {
		at := open[min(i, len(open)-1)]
		rows.bind(&r.claims[at], r.claimTime(at, now))
	}
	statement, values := r.scope.batch(size), rows.values
	if r.standing != nil {
		statement, values = r.scope.takeOver(size), r.withLives(values, open, now)
	}
	query := r.store.conditional(ctx, statement, values...).
		RoutingKey(r.scope.routingKey(r.bucket))
	applied, err := r.scanExisting(query.Iter(), open, true)
	if err != nil || !applied {
		return err
	}
	for _, i := range open {
		r.answers[i] = dedup.Answer{
			Outcome: dedup.Applied, Owner: r.claims[i].Owner, Fingerprint: r.claims[i].Fingerprint,
			ClaimedAt: r.claimTime(i, now),
		}
	}
	return nil
}

func (r *round) claimTime(i int32, now time.Time) time.Time {
	if r.standing != nil {
		return r.standing[i].ClaimedAt
	}
	return dedup.ClaimTime(r.claims[i:i+1], now)
}

// read looks for existing claims. A row that is there is decided, no matter which process wrote it;
// that a row is not there says nothing yet.
func (r *round) read(ctx context.Context, open []int32) error {
	ids := appendIDs(r.claims, open)
	query := r.store.session.Query(r.scope.selectIn, r.bucket, &ids).
		WithContext(ctx).RoutingKey(r.scope.routingKey(r.bucket))
	_, err := r.scanExisting(query.Iter(), open, false)
	return err
}
