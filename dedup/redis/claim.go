package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/kdedup/kdedup/dedup"
)

// sideBySide is how many pipelines of one call are under way: the server works on one while others
// are written and read.
const sideBySide = 4

// Claim implements dedup.Store. After the first pipeline that fails no other begins: the caller
// pauses before it repeats what is open, so a server in trouble is asked little.
func (s *Store) Claim(
	ctx context.Context, scope dedup.Scope, claims []dedup.Claim,
) ([]dedup.Answer, error) {
	answers := make([]dedup.Answer, len(claims))
	if err := s.watch.Err(); err != nil {
		return answers, fmt.Errorf("claim %d ids: redis: %w", len(claims), err)
	}
	claimedAt := dedup.ClaimTime(claims, time.Now())
	var (
		pipelines errgroup.Group
		failed    atomic.Bool
	)
	pipelines.SetLimit(min(sideBySide, s.options.Connections))
	for from := 0; from < len(claims) && !failed.Load(); from += s.options.PipelineClaims {
		to := min(from+s.options.PipelineClaims, len(claims))
		pipelines.Go(func() error {
			b := newBatch(ctx, s.options.KeyPrefix, scope, claims[from:to], claimedAt)
			err := s.send(ctx, b, answers[from:to])
			if scope.Sliding {
				err = s.renew(ctx, scope, b, answers[from:to], err)
			}
			if err != nil {
				failed.Store(true)
			}
			return err
		})
	}
	if err := pipelines.Wait(); err != nil {
		return answers, fmt.Errorf("claim %d ids: redis: %w", len(claims), err)
	}
	return answers, nil
}

// send runs one pipeline and takes the answers that it gives.
func (s *Store) send(ctx context.Context, b *batch, answers []dedup.Answer) error {
	acked, err := s.execute(ctx, b.commands, b.left)
	if err = b.take(answers, err); err == nil && acked != nil {
		err = s.enough(acked)
	}
	if err != nil && acked != nil {
		clear(answers) // what was applied may be on one server only
	}
	return s.explain(ctx, err)
}

// execute runs a pipeline of the commands, and of WAIT if replicas shall have what it wrote. The
// error is the first one of a command, which may be that there is no such key.
func (s *Store) execute(
	ctx context.Context, commands ...[]goredis.Cmder,
) (acked *goredis.IntCmd, err error) {
	pipeline := s.client.Pipeline()
	for _, some := range commands {
		_ = pipeline.BatchProcess(ctx, some...) // only queues them
	}
	if s.options.WaitReplicas > 0 {
		// WAIT is about the last write of its connection, and a pipeline of known IDs writes
		// nothing. The mark makes it wait for all that was written before, also by others.
		pipeline.Set(ctx, markKey(s.options.KeyPrefix), "", time.Minute)
		acked = goredis.NewIntCmd(ctx, "wait", s.options.WaitReplicas,
			s.options.WaitTimeout.Milliseconds())
		_ = pipeline.Process(ctx, acked) // queued, as the others
	}
	start := time.Now()
	_, err = pipeline.Exec(ctx)
	s.metrics.seconds.Observe(time.Since(start).Seconds())
	return acked, err
}

// enough looks at the answer of WAIT.
func (s *Store) enough(acked *goredis.IntCmd) error {
	n, err := acked.Result()
	if err == nil && n < int64(s.options.WaitReplicas) {
		err = &replicasError{got: n, want: s.options.WaitReplicas, within: s.options.WaitTimeout}
	}
	return err
}

// batch is the claims of one pipeline. Its commands point into few large pieces of memory; the
// driver would otherwise have most of the cost of a claim.
type batch struct {
	claims    []dedup.Claim
	standing  []dedup.Standing // of which the claims are, if another store has made them
	claimedAt time.Time
	commands  []goredis.Cmder
	left      []goredis.Cmder // how long the claims live then, in a sliding scope
	texts     []string        // key and value of each claim
	found     []byte          // room for the values that the server answers with
}

const (
	words = 7               // SET key value NX GET EX seconds, or PX milliseconds
	room  = recordBytes + 2 // with the end of line the driver reads a value in one go
)

func newBatch(
	ctx context.Context, prefix string, scope dedup.Scope, claims []dedup.Claim,
	claimedAt time.Time,
) *batch {
	b := &batch{claims: claims, claimedAt: claimedAt}
	seconds := strconv.FormatInt(int64(scope.TTL/time.Second), 10)
	b.command(ctx, claimPrefix(prefix, scope), "ex", func(int) *string { return &seconds })
	if scope.Sliding {
		b.askLives(ctx)
	}
	return b
}

// command makes the commands; unit and left say how long each claim lives.
func (b *batch) command(ctx context.Context, prefix, unit string, left func(i int) *string) {
	b.commands = make([]goredis.Cmder, len(b.claims))
	b.found = make([]byte, len(b.claims)*room)
	b.texts = b.write(prefix)
	args := make([]any, len(b.claims)*words)
	for i := range b.claims {
		set := args[i*words : (i+1)*words : (i+1)*words]
		set[0], set[1], set[2], set[3] = "set", &b.texts[2*i], &b.texts[2*i+1], "nx"
		set[4], set[5], set[6] = "get", unit, left(i)
		b.commands[i] = goredis.NewZeroCopyStringCmd(ctx, b.room(i), set...)
	}
}

func (b *batch) claimTime(i int) time.Time {
	if b.standing != nil {
		return b.standing[i].ClaimedAt
	}
	return b.claimedAt
}

// write returns the key and the value of each claim.
func (b *batch) write(prefix string) []string {
	size := len(b.claims) * (len(prefix) + recordBytes)
	for i := range b.claims {
		size += len(b.claims[i].ID)
	}
	var (
		all    strings.Builder
		record [recordBytes]byte
		texts  = make([]string, 2*len(b.claims))
	)
	all.Grow(size)
	for i := range b.claims {
		all.WriteString(prefix)
		all.WriteString(string(b.claims[i].ID))
		all.Write(appendRecord(record[:0], &b.claims[i], b.claimTime(i)))
	}
	rest := all.String()
	for i := range b.claims {
		key := len(prefix) + len(b.claims[i].ID)
		texts[2*i], texts[2*i+1] = rest[:key], rest[key:key+recordBytes]
		rest = rest[key+recordBytes:]
	}
	return texts
}

func (b *batch) room(i int) []byte { return b.found[i*room : (i+1)*room : (i+1)*room] }

// take reads the answers and returns the first error. sent is the pipeline's own, which counts when
// no command has one: then nothing was sent.
func (b *batch) take(answers []dedup.Answer, sent error) error {
	var first error
	for i, command := range b.commands {
		var err error
		if answers[i], err = b.answer(i, command.(*goredis.ZeroCopyStringCmd)); err != nil &&
			first == nil {
			first = err
		}
	}
	if first != nil && sent != nil && errors.Is(first, errNoAnswer) {
		return sent
	}
	return first
}

var errNoAnswer = errors.New("the server gave no answer")

func (b *batch) answer(i int, command *goredis.ZeroCopyStringCmd) (dedup.Answer, error) {
	n, err := command.Result()
	switch {
	case err == goredis.Nil: // never wrapped: there was no such key, so the command made it
		c := &b.claims[i]
		return dedup.Answer{Outcome: dedup.Applied, Owner: c.Owner, Fingerprint: c.Fingerprint,
			ClaimedAt: b.claimTime(i)}, nil
	case err != nil:
		return dedup.Answer{}, err
	case n == 0:
		return dedup.Answer{}, errNoAnswer
	}
	return parseRecord(b.room(i)[:n])
}
