package claimlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/crashpoint"
	"github.com/kdedup/kdedup/internal/pause"
	"github.com/kdedup/kdedup/internal/steadyclock"
)

// space is the log of one consumer group in use, all shards of it or one. Its goroutine opens the
// log and reads it for as long as the store is open; after an error it begins again, where the
// index is or at the beginning of the log.
type space struct {
	store   *Store
	group   string
	shard   int // allShards, or the one that it reads
	opener  Opener
	log     *slog.Logger
	times   timing
	only    Only
	metrics spaceMetrics
	writing writing

	mu      sync.Mutex
	changed chan struct{}     // closed, and replaced, when one of the following changes
	reading *reading          // nil: the log is not read now
	why     error             // why it is not
	pending map[blockID]*part // of calls that wait
	clock   clock
	skewed  time.Time         // when a clock that is wrong was told last
	carries map[string]*carry // by scope

	life  context.Context // ends with the space
	stop  context.CancelFunc
	ended chan struct{}
	tasks sync.WaitGroup // carries
}

// timing are the intervals of a space.
type timing struct {
	retry time.Duration // before a log is opened again, jittered
	save  time.Duration // between two saves of the index
	drop  time.Duration // between two deletions of what has ended
	// after the last block of an earlier version, before newer ones are written
	settle time.Duration
	// for which a block may stand in the log, and its reader is not shown it
	stuck time.Duration
}

// reading is one log, from its opening to the first error. All is guarded by the space's mu, but
// log.
type reading struct {
	log     Log
	machine *machine
	ends    []int64 // of the shards when reading began; nil once all was read
	blocks  int64   // how many there were to read then
	told    time.Time
	gap     bool // one was told
	// since when blocks of this process stand in a shard of which nothing was read; zero: none do
	unread []time.Time
}

func (s *Store) newSpace(group string, shard int) *space {
	ctx, cancel := context.WithCancel(context.Background())
	space := &space{
		store: s, group: group, shard: shard, opener: s.o.Opener, log: s.o.Logger, times: s.o.times,
		only: s.o.Only, metrics: s.metrics.of(group, shard),
		changed: make(chan struct{}), pending: make(map[blockID]*part),
		why:     errors.New("the claim log is being opened"),
		carries: make(map[string]*carry), life: ctx, stop: cancel, ended: make(chan struct{}),
	}
	go func() {
		defer close(space.ended)
		space.run(ctx)
	}()
	return space
}

// reads tells whether a shard is one that the space reads.
func (s *space) reads(shard int) bool { return s.shard == allShards || s.shard == shard }

// leaving returns the positions without those of shards that the space leaves to others.
func (s *space) leaving(at []Position) []Position {
	if s.shard == allShards {
		return at
	}
	of := make([]Position, len(at))
	for i := range of {
		of[i] = notRead
	}
	of[s.shard] = at[s.shard]
	return of
}

func (s *space) close() {
	s.stop()
	<-s.ended
	s.tasks.Wait()
}

// run follows the log until ctx ends.
func (s *space) run(ctx context.Context) {
	var k keeper
	for ctx.Err() == nil {
		err := s.follow(ctx, &k)
		if ctx.Err() != nil {
			break
		}
		s.failed(err)
		if errors.Is(err, ErrCut) || errors.Is(err, errIndex) {
			s.log.Warn("the index is made again from the claim log", "group", s.group, "error", err)
			s.metrics.rebuilt.Inc()
			if err := k.reset(); err != nil {
				s.log.Error("the index cannot be emptied", "group", s.group, "error", err)
			}
		}
		pause.For(ctx, s.times.retry/2+rand.N(s.times.retry/2+1))
	}
	s.failed(errClosed)
	if err := k.close(); err != nil {
		s.log.Warn("the index was not closed well", "group", s.group, "error", err)
	}
}

// keeper keeps an index, and the machine that stands at the place to which the index has come, from
// one reading to the next.
type keeper struct {
	index   index
	clock   *steadyclock.Clock // by which the index forgets
	machine *machine
	first   identity // of the log that the first reading found
}

// machineFor returns a machine for a log. It goes on where the last one was, or the last process,
// or at the beginning.
func (k *keeper) machineFor(log string, agreed agreement) (m *machine, err error) {
	if k.machine == nil {
		if k.machine, err = newMachine(k.index, log, agreed); err != nil {
			return nil, fmt.Errorf("begin an index: %w", err)
		}
	}
	return k.machine, nil
}

func (k *keeper) reset() error {
	if k.machine = nil; k.index == nil {
		return nil
	}
	return k.index.reset()
}

func (k *keeper) close() error {
	if k.index == nil {
		return nil
	}
	return errors.Join(k.clock.Save(), k.index.close())
}

var errClosed = errors.New("the store is closed")

// follow opens the log and reads it until an error.
func (s *space) follow(ctx context.Context, k *keeper) (err error) {
	if k.index == nil {
		if k.index, k.clock, err = s.store.newIndex(s.group, s.shard); err != nil {
			return fmt.Errorf("open the index: %w", err)
		}
	}
	log, err := s.opener.Open(ctx, s.group)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	r, err := s.begin(ctx, k, log)
	if err != nil {
		return err
	}
	return s.read(ctx, k, r)
}

// begin puts a machine at the place from which the log is to be read.
func (s *space) begin(ctx context.Context, k *keeper, log Log) (*reading, error) {
	agreed, err := agree(ctx, s.opener.Registry(s.group), log.Shards())
	if err != nil {
		return nil, err
	}
	found := identity{log.ID(), agreed.ID}
	if k.first == (identity{}) {
		k.first = found
	}
	if found != k.first {
		return nil, fmt.Errorf("%w (it was %v and is %v)", errLost, k.first, found)
	}
	m, err := k.machineFor(log.ID(), agreed)
	if err != nil {
		return nil, err
	}
	m.only = s.only
	spans, err := log.Spans(ctx, s.leaving(m.ahead))
	if err != nil {
		return nil, err
	}
	r := &reading{log: log, machine: m, ends: make([]int64, len(spans)), told: time.Now(),
		unread: make([]time.Time, len(spans))}
	for i, span := range spans {
		if !s.reads(i) {
			continue
		}
		at, ahead := &m.shards[i], &m.ahead[i]
		if ahead.Epoch < 0 {
			at.Next, ahead.Next = span.First, span.First
		} else if at.Next < span.First || ahead.Next > span.End {
			return nil,
				fmt.Errorf("%w: shard %d was read up to %d, and has the places from %d to %d",
					ErrCut, i, ahead.Next, span.First, span.End)
		}
		r.ends[i] = span.End
	}
	if err := s.checkBeginning(ctx, r, spans); err != nil {
		return nil, err
	}
	r.blocks = r.left()
	return r, nil
}

// read applies the log until an error. Beside it, the index is saved and emptied of what has ended.
func (s *space) read(ctx context.Context, k *keeper, r *reading) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var tending sync.WaitGroup
	tending.Go(func() {
		if err := s.tend(ctx, k.clock, r); err != nil {
			cancel(err)
		}
	})
	s.mu.Lock()
	s.reading = r
	s.noteWritersLocked(r)
	s.metrics.reading.Set(1)
	s.metrics.unread.Set(float64(r.blocks))
	s.noteReadLocked()
	s.tellLocked()
	positions := s.leaving(r.machine.positions())
	s.mu.Unlock()
	err := r.log.Read(ctx, positions, func(entries []Entry) error {
		return s.apply(ctx, r, entries)
	})
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	cancel(nil)
	tending.Wait()
	if errors.Is(err, ErrCut) || errors.Is(err, errIndex) {
		return err
	}
	_, saveErr := s.save(context.WithoutCancel(ctx), r)
	return errors.Join(err, saveErr)
}

// apply is where everything is decided.
func (s *space) apply(ctx context.Context, r *reading, entries []Entry) error {
	for i := range entries {
		err := s.applyOne(ctx, r, entries[i])
		var other otherLogError
		if errors.As(err, &other) {
			err = s.askAgain(ctx, r, other, entries[i])
		}
		if err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteWritersLocked(r)
	s.noteReadLocked()
	s.tellLocked()
	return nil
}

func (s *space) applyOne(ctx context.Context, r *reading, e Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.unread[e.Shard] = time.Time{}
	var mine *part
	front := &r.machine.shards[e.Shard]
	before, next := front.Time, front.Next
	err := r.machine.apply(ctx, e, func(id blockID) func(int, dedup.Answer) {
		if mine = s.pending[id]; mine == nil {
			return nil
		}
		return mine.tell
	})
	if err != nil {
		return err
	}
	void := r.machine.void
	s.tellClocks(e, void, before, front.Time)
	if next < e.At && !r.gap {
		r.gap = true
		s.log.Warn("places of the claim log have no block, as where a topic was compacted: claims "+
			"that stood there are not known to who reads them now", "group", s.group,
			"shard", e.Shard, "from", next, "to", e.At)
	}
	if mine == nil {
		return nil
	}
	if void == nil {
		s.clock = clock{front.Time, time.Now()}
		if err := mine.reopenDue(r.machine); err != nil {
			return err
		}
		if err := mine.answerKnown(r.machine); err != nil {
			return err
		}
	}
	crashpoint.At("block-read-back")
	delete(s.pending, mine.id)
	s.metrics.noteRead(mine)
	mine.done(void)
	return nil
}

// askAgain finds out which of the two is out of date: the block, or this process.
func (s *space) askAgain(ctx context.Context, r *reading, other otherLogError, e Entry) error {
	agreed, err := agree(ctx, s.opener.Registry(s.group), r.log.Shards())
	if err != nil {
		return err
	}
	if agreed != r.machine.agreed {
		return fmt.Errorf("%w: the agreement about it is another one now", ErrCut)
	}
	s.log.Warn("blocks that were written under another agreement are passed over",
		"group", s.group, "shard", e.Shard, "place", e.At)
	r.machine.other[other.id] = true
	return s.applyOne(ctx, r, e)
}

// noteReadLocked notes when all was read that the log had when reading began, and until then tells
// now and then how far that is.
func (s *space) noteReadLocked() {
	r := s.reading
	if r.ends == nil {
		return
	}
	left := r.left()
	s.metrics.unread.Set(float64(left))
	switch {
	case left == 0:
		r.ends = nil
		s.log.Info("the index is at the end of the claim log", "group", s.group, "blocks", r.blocks)
	case time.Since(r.told) >= tellEvery:
		r.told = time.Now()
		s.log.Info("the claim log is being read", "group", s.group, "blocks", r.blocks-left,
			"of", r.blocks)
	}
}

const tellEvery = 10 * time.Second

// left is how many blocks are still to be read, of those that there were when reading began.
func (r *reading) left() (blocks int64) {
	for i, end := range r.ends {
		blocks += max(0, end-r.machine.shards[i].Next)
	}
	return blocks
}

func (s *space) tellLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// failed leaves everything undecided that waits.
func (s *space) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !errors.Is(err, errClosed) && err.Error() != s.why.Error() {
		s.log.Warn("the claim log cannot be read, trying again", "group", s.group, "error", err)
	}
	s.reading, s.why = nil, err
	s.metrics.reading.Set(0)
	for id, p := range s.pending {
		delete(s.pending, id)
		p.done(err)
	}
	s.tellLocked()
}
