package redis

import (
	"context"
	"errors"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/kdedup/kdedup/dedup"
)

// askLives asks behind the claims how long each lives, so that copies of young ones cost no second
// pipeline.
func (b *batch) askLives(ctx context.Context) {
	b.left = make([]goredis.Cmder, len(b.claims))
	for i := range b.left {
		b.left[i] = goredis.NewIntCmd(ctx, "pttl", &b.texts[2*i])
	}
}

// due lists the answers that are good once their claims are renewed.
func (b *batch) due(scope dedup.Scope, answers []dedup.Answer) (due []int) {
	for i := range answers {
		a := &answers[i]
		if a.Outcome != dedup.Exists || !b.claims[i].Renews(scope, a.Owner) {
			continue
		}
		left, err := b.left[i].(*goredis.IntCmd).Result()
		late := time.Duration(left)*time.Millisecond <= scope.DueAt()
		if err != nil || left != neverEnds && late {
			due = append(due, i)
		}
	}
	return due
}

// What PTTL says of a key that has no end, and of one that is not there.
const (
	neverEnds = -1
	noSuchKey = -2
)

var errEndedMeanwhile = errors.New("a claim has ended, or was released, before it was renewed")

// renew puts off the ends of claims that copies have found, once the claims themselves are decided;
// failed is their error. What cannot be renewed for certain is left undecided, and claimed again.
//
// EXPIRE touches no key that has gone, and with GT makes none end earlier. It does not compare the
// owner, and need not: if the claim has gone and another one was made since, then that one begins
// its life a moment later.
func (s *Store) renew(
	ctx context.Context, scope dedup.Scope, b *batch, answers []dedup.Answer, failed error,
) error {
	due := b.due(scope, answers)
	if len(due) == 0 {
		return failed
	}
	if failed == nil {
		gone, err := s.extend(ctx, scope, b, due)
		if err == nil {
			for _, i := range gone {
				answers[i], failed = dedup.Answer{}, errEndedMeanwhile
			}
			return failed
		}
		failed = s.explain(ctx, err)
	}
	for _, i := range due {
		answers[i] = dedup.Answer{}
	}
	return failed
}

// extend returns which of the claims had gone.
func (s *Store) extend(
	ctx context.Context, scope dedup.Scope, b *batch, due []int,
) (gone []int, err error) {
	seconds := strconv.FormatInt(int64(scope.TTL/time.Second), 10)
	commands := make([]goredis.Cmder, 0, 2*len(due))
	for _, i := range due {
		key := &b.texts[2*i]
		commands = append(commands, goredis.NewIntCmd(ctx, "expire", key, &seconds, "gt"),
			goredis.NewIntCmd(ctx, "pttl", key))
	}
	acked, err := s.execute(ctx, commands)
	if err == nil && acked != nil {
		err = s.enough(acked)
	}
	if err != nil {
		return nil, err
	}
	for n, i := range due {
		if commands[2*n+1].(*goredis.IntCmd).Val() == noSuchKey {
			gone = append(gone, i)
		}
	}
	return gone, nil
}
