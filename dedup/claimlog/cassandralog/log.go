package cassandralog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/gocql/gocql"
	"golang.org/x/sync/errgroup"

	"github.com/kdedup/kdedup/dedup/cassandra"
	"github.com/kdedup/kdedup/dedup/claimlog"
)

// tableLog is the claim log of a group.
type tableLog struct {
	group      string
	session    *cassandra.Session
	say        *slog.Logger
	now        func() time.Time
	statements statements
	registry   *registry
	limit      time.Duration // of one request

	founding
	uuid   gocql.UUID
	text   []byte // of the founding
	shards []*shard

	mu      sync.Mutex
	checked moment    // when the founding was found as it was, last
	told    time.Time // of a time that is still to come
}

var _ claimlog.Log = (*tableLog)(nil)

// moment is a time by both clocks of this process: one that only goes forward, and may stand still
// while the machine does, and tableLog.now.
type moment struct{ steady, wall time.Time }

func (t *tableLog) moment() moment { return moment{time.Now(), t.now()} }

// since is how long ago a moment was, by the clock that says more.
func (t *tableLog) since(m moment) time.Duration {
	return max(time.Since(m.steady), t.now().Sub(m.wall))
}

// ID implements claimlog.Log.
func (t *tableLog) ID() string { return t.founding.ID }

// Shards implements claimlog.Log.
func (t *tableLog) Shards() int { return t.founding.Shards }

// Retention implements claimlog.Log: each block is kept as long as its writer wants.
func (t *tableLog) Retention() time.Duration { return 0 }

// Close implements claimlog.Log. Nothing of a log goes on once Read has returned.
func (t *tableLog) Close() error {
	for _, s := range t.shards {
		s.close()
	}
	return nil
}

// describe finds out what the log is.
func (t *tableLog) describe(ctx context.Context) error {
	text, err := t.look(ctx)
	if err != nil {
		return err
	}
	if t.founding, t.uuid, err = parseFounding(text); err != nil {
		return err
	}
	t.text = text
	for i := range t.founding.Shards {
		t.shards = append(t.shards, newShard(t, i))
	}
	return nil
}

// verify returns ErrCut if there is another log now. It also compares the clocks.
func (t *tableLog) verify(ctx context.Context) error {
	text, err := t.look(ctx)
	if err != nil {
		return err
	}
	if !bytes.Equal(text, t.text) {
		return fmt.Errorf("%w: the claim log of %s was made again", claimlog.ErrCut, t.group)
	}
	return nil
}

// clockTolerance is how far the clock of this process may be from those of the nodes. The blocks
// have its time.
const clockTolerance = 30 * time.Second

// look reads the founding from both tables, and a node's clock.
func (t *tableLog) look(ctx context.Context) ([]byte, error) {
	before := t.moment()
	var here []byte
	var node time.Time
	err := t.session.Read(ctx, t.statements.founding, foundingPlace(t.group)...).Scan(&here, &node)
	if errors.Is(err, gocql.ErrNotFound) {
		return nil, t.registry.logs.missing(t.group)
	}
	if err != nil {
		return nil, fmt.Errorf("read what the claim log of %s is: %w", t.group, err)
	}
	if err := compareClocks(before.wall, node, time.Since(before.steady)); err != nil {
		return nil, err
	}
	there, err := t.registry.committed(ctx, foundingKey)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(here, there) {
		return nil, t.registry.logs.missing(t.group)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.checked = before
	return here, nil
}

// compareClocks refuses a clock that was read before a node's, which answered within a time.
func compareClocks(own, node time.Time, within time.Duration) error {
	ahead, text := own.Sub(node), "ahead of"
	if ahead < 0 {
		ahead, text = -ahead-within, "behind"
	}
	if ahead <= clockTolerance {
		return nil
	}
	return fmt.Errorf("%w: it is %v %s that of the Cassandra node that answered, and may be %v; "+
		"set the clocks right", errClock, ahead.Round(time.Second), text, clockTolerance)
}

var errClock = errors.New("claims would end at the wrong time by this machine's clock")

const (
	// checkEvery is how often it is looked whether the log is still the one that was opened.
	checkEvery = time.Second
	// believed is how long that is believed, where the nodes do not answer at once.
	believed = 5 * time.Second
)

// verified calls verify if that was too long ago, or the clock has jumped since.
func (t *tableLog) verified(ctx context.Context) error {
	if t.holds(t.now()) {
		return nil
	}
	return t.verify(ctx)
}

// holds tells whether what was verified last, not long ago, fits to a time of the clock.
func (t *tableLog) holds(now time.Time) bool {
	t.mu.Lock()
	last := t.checked
	t.mu.Unlock()
	elapsed := time.Since(last.steady)
	return elapsed < believed && (now.Sub(last.wall)-elapsed).Abs() < clockTolerance/10
}

// time is that of the clock, after the log and the clock were verified.
func (t *tableLog) time(ctx context.Context) (time.Time, error) {
	for range 3 {
		if now := t.now(); t.holds(now) {
			return now, nil
		}
		if err := t.verify(ctx); err != nil {
			return time.Time{}, err
		}
	}
	return time.Time{}, errors.New("the clock jumps to and fro, or the nodes answer slowly")
}

// Append implements claimlog.Log.
func (t *tableLog) Append(shard int, block []byte, keep time.Duration, done func(error)) {
	t.shards[shard].push(&pending{
		block: block, keep: keep, done: done, mark: newMark(), until: time.Now().Add(appendTimeout),
	})
}

// newMark is never zero.
func newMark() int64 { return 1 + rand.Int64N(1<<63-1) }

// Spans implements claimlog.Log.
func (t *tableLog) Spans(
	ctx context.Context, read []claimlog.Position,
) ([]claimlog.Span, error) {
	if err := t.verify(ctx); err != nil {
		return nil, err
	}
	spans := make([]claimlog.Span, len(read))
	var each errgroup.Group
	for i, p := range read {
		if p.Left() {
			continue
		}
		each.Go(func() (err error) {
			s := t.shards[i]
			if spans[i], err = s.span(ctx, p); err != nil {
				return fmt.Errorf("shard %d: %w", i, err)
			}
			s.readTo(spans[i].End)
			return nil
		})
	}
	if err := each.Wait(); err != nil {
		return nil, err
	}
	return spans, nil
}

// Read implements claimlog.Log. A goroutine for each shard reads it and appends to it, and one
// looks whether the log is still there.
func (t *tableLog) Read(
	ctx context.Context, from []claimlog.Position, apply func([]claimlog.Entry) error,
) error {
	group, ctx := errgroup.WithContext(ctx)
	found := make(chan []claimlog.Entry)
	for i, p := range from {
		if p.Left() {
			continue
		}
		group.Go(func() error {
			if err := t.shards[i].run(ctx, p, found); err != nil {
				return fmt.Errorf("shard %d of the claim log of %s: %w", i, t.group, err)
			}
			return nil
		})
	}
	group.Go(func() error { return t.watch(ctx) })
	group.Go(func() error {
		for {
			select {
			case entries := <-found:
				if err := apply(entries); err != nil {
					return err
				}
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	})
	return group.Wait()
}

// watch verifies now and then, also while nothing is appended. A node that does not answer in time
// is asked again.
func (t *tableLog) watch(ctx context.Context) error {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		if err := t.verify(ctx); err != nil && definite(err) {
			return err
		}
	}
}

// definite tells of errors that no second try fixes.
func definite(err error) bool {
	for _, is := range []error{claimlog.ErrCut, errRow, errMissing, errClock, errClosed} {
		if errors.Is(err, is) {
			return true
		}
	}
	var answer gocql.RequestError
	return errors.As(err, &answer) && slices.Contains([]int{gocql.ErrCodeSyntax,
		gocql.ErrCodeUnauthorized, gocql.ErrCodeInvalid, gocql.ErrCodeConfig}, answer.Code())
}

// lookAtTime tells if others write blocks with a time that is still to come. The log takes it over,
// as its time never goes back, and claims end early.
func (t *tableLog) lookAtTime(ofBlock int64) {
	ahead := time.UnixMilli(ofBlock).Sub(t.now())
	t.mu.Lock()
	defer t.mu.Unlock()
	if ahead > 2*clockTolerance && time.Since(t.told) > time.Minute {
		t.told = time.Now()
		t.say.Warn("blocks of the claim log have a time that is still to come, so claims end early: "+
			"a clock was wrong", "group", t.group, "ahead", ahead.Round(time.Second))
	}
}
