package cassandra

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gocql/gocql"
	"golang.org/x/sync/errgroup"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/pause"
)

var _ dedup.Mover = (*Store)(nil)

const (
	pageAttempts = 5 // to read a page
	pagePause    = time.Second
	findSideways = 16 // buckets that Find asks at the same time
)

// Export implements dedup.Exporter, bucket by bucket in the order of the IDs. Each page begins
// where the one before ended, and completes the claims that are in flight in its bucket.
func (s *Store) Export(
	ctx context.Context, scope dedup.Scope, page func([]dedup.Standing) error,
) error {
	for bucket := range int32(scope.Buckets) {
		if err := s.exportBucket(ctx, scope, bucket, page); err != nil {
			return fmt.Errorf("export claims of scope %s/%s: cassandra: %w", scope.ConsumerGroup,
				scope.Name, err)
		}
	}
	return nil
}

func (s *Store) exportBucket(
	ctx context.Context, scope dedup.Scope, bucket int32, page func([]dedup.Standing) error,
) error {
	query := "SELECT message_id, owner, TTL(owner) FROM " + s.options.qualifiedTable() +
		" WHERE consumer_group = ? AND topic = ? AND bucket = ? AND message_id > ? LIMIT ?"
	behind := []byte{}
	for {
		told, err := s.readPage(ctx, query, scope.ConsumerGroup, scope.Name, bucket, behind,
			dedup.StandingPage)
		if err != nil || len(told) == 0 {
			return err
		}
		behind = []byte(told[len(told)-1].ID) // page may change them
		full := len(told) == dedup.StandingPage
		if err := page(told); err != nil || !full {
			return err
		}
	}
}

// readPage reads again what a timeout or an overload left open: it changes nothing.
func (s *Store) readPage(
	ctx context.Context, query string, values ...any,
) (told []dedup.Standing, err error) {
	for n := 1; ; n++ {
		told, err = s.readStanding(s.session.Query(query, values...).WithContext(ctx))
		if err == nil || n == pageAttempts || !pause.For(ctx, pagePause) {
			break
		}
	}
	var failure *gocql.RequestErrReadFailure
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, &failure):
		return nil, fmt.Errorf("%w; if the server's log tells of tombstones, compact the table, "+
			"or raise tombstone_failure_threshold until all is read", err)
	}
	return told, err
}

// readStanding reads rows of message_id, owner and the TTL that is left.
func (s *Store) readStanding(query *gocql.Query) (told []dedup.Standing, err error) {
	var (
		id    borrowed
		owner ownerCell
		left  *int
		now   = time.Now()
		iter  = query.Consistency(s.levels.read).Iter()
	)
	for iter.Scan(&id, &owner, &left) {
		if left == nil && owner.found {
			err = fmt.Errorf("the claim of id %x never ends: somebody else has written it",
				[]byte(id))
		}
		if owner.found && left != nil {
			told = append(told, dedup.Standing{ID: dedup.ID(id), Owner: owner.answer.Owner,
				Fingerprint: owner.answer.Fingerprint, ClaimedAt: owner.answer.ClaimedAt,
				Ends: now.Add(time.Duration(*left) * time.Second)})
		}
		id, owner.found, left = nil, false, nil
	}
	return told, errors.Join(iter.Close(), err)
}

// Find implements dedup.Exporter with serial reads.
func (s *Store) Find(
	ctx context.Context, scope dedup.Scope, ids []dedup.ID,
) ([]dedup.Standing, error) {
	found, err := s.find(ctx, scope, ids)
	if err != nil {
		return nil, fmt.Errorf("find %d claims: cassandra: %w", len(ids), err)
	}
	return found, nil
}

func (s *Store) find(
	ctx context.Context, scope dedup.Scope, ids []dedup.ID,
) (found []dedup.Standing, err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	st, err := s.state(ctx, scope)
	if err != nil {
		return nil, err
	}
	claims := make([]dedup.Claim, len(ids))
	for i, id := range ids {
		claims[i].ID = id
	}
	query := "SELECT message_id, owner, TTL(owner) FROM " + s.options.qualifiedTable() +
		" WHERE consumer_group = ? AND topic = ? AND bucket = ? AND message_id IN ?"
	var buckets errgroup.Group
	buckets.SetLimit(findSideways)
	groups := groupByBucket(st, st.hashes(claims))
	parts := make(chan []dedup.Standing, len(groups))
	for bucket, members := range groups {
		buckets.Go(func() error {
			in := appendIDs(claims, members)
			told, err := s.readPage(ctx, query, scope.ConsumerGroup, scope.Name, bucket, &in)
			parts <- told
			return err
		})
	}
	err = buckets.Wait()
	close(parts)
	for told := range parts {
		found = append(found, told...)
	}
	return found, err
}

// Import implements dedup.Importer by the rounds of Claim.
func (s *Store) Import(
	ctx context.Context, scope dedup.Scope, claims []dedup.Standing,
) ([]dedup.Answer, error) {
	answers := make([]dedup.Answer, len(claims))
	st, err := s.state(ctx, scope)
	if err != nil {
		return answers, fmt.Errorf("import %d claims: %w", len(claims), err)
	}
	asked := make([]dedup.Claim, len(claims))
	for i := range claims {
		asked[i] = dedup.Claim{ID: claims[i].ID, Owner: claims[i].Owner,
			Fingerprint: claims[i].Fingerprint}
	}
	var buckets errgroup.Group
	hashes := st.hashes(asked)
	for bucket, members := range groupByBucket(st, hashes) {
		members = living(members, claims, time.Now())
		buckets.Go(func() error {
			round := round{store: s, scope: st, bucket: bucket, claims: asked, standing: claims,
				hashes: hashes, answers: answers}
			return round.run(ctx, members)
		})
	}
	if err := buckets.Wait(); err != nil {
		return answers, fmt.Errorf("import %d claims: cassandra: %w", len(claims), err)
	}
	return answers, nil
}

func living(members []int32, claims []dedup.Standing, now time.Time) (left []int32) {
	for _, i := range members {
		if claims[i].Left(now) > 0 {
			left = append(left, i)
		}
	}
	return left
}

// withLives adds to the values of each row how many seconds are left of its claim. The last claim
// fills up the batch.
func (r *round) withLives(values []any, open []int32, now time.Time) []any {
	const perRow = 3
	all := make([]any, 0, len(values)/perRow*(perRow+1))
	for i := range len(values) / perRow {
		claim := &r.standing[open[min(i, len(open)-1)]]
		// a row lives until its second has passed
		seconds := max(1, int((claim.Left(now)+time.Second-1)/time.Second))
		all = append(append(all, values[i*perRow:(i+1)*perRow]...), seconds)
	}
	return all
}
