package cassandralog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/kdedup/kdedup/dedup/claimlog"
)

// shard is one of a log. Its goroutine reads on from the place that it has reached, and appends
// there: no two appends of this process compete.
type shard struct {
	log    *tableLog
	number int
	mark   int64 // of this process, as one that opens slices
	wake   chan struct{}

	mu      sync.Mutex
	closed  bool
	queue   []*pending
	want    int64 // a place up to which there are blocks
	started bool  // firstPlace is known
	begins  int64 // what first said

	// of the goroutine
	at     int64 // the next place
	last   row   // in front of it, without its block; its mark is 0 if it could not be read
	found  chan<- []claimlog.Entry
	losses int // of races in a row
	opened opening
	quiet  time.Time // when the mark of the last block was compared
}

// pending is a block that waits until it stands in the log.
type pending struct {
	block []byte
	keep  time.Duration
	mark  int64
	until time.Time // when it is given up
	done  func(error)
}

func newShard(t *tableLog, number int) *shard {
	return &shard{log: t, number: number, mark: newMark(), wake: make(chan struct{}, 1)}
}

const (
	appendTimeout = 10 * time.Second
	// of one conditional batch
	batchBlocks = 16
	batchBytes  = 1 << 20
	pageBlocks  = 64
	pageSize    = 16 // rows of one answer: the largest blocks are of half a megabyte
	// between looks at a shard to which nobody appends
	leastPoll, mostPoll = 10 * time.Millisecond, 500 * time.Millisecond
)

func (s *shard) push(p *pending) {
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.queue = append(s.queue, p)
	}
	s.mu.Unlock()
	if closed {
		p.done(errClosed)
		return
	}
	s.signal()
}

// signal has the goroutine look at once.
func (s *shard) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *shard) readTo(end int64) {
	s.mu.Lock()
	s.want = max(s.want, end)
	s.mu.Unlock()
	s.signal()
}

func (s *shard) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.giveUp(errClosed, func(*pending) bool { return true })
}

// giveUp fails those of the blocks that wait which are meant.
func (s *shard) giveUp(err error, meant func(*pending) bool) {
	var given []*pending
	s.mu.Lock()
	s.queue = slices.DeleteFunc(s.queue, func(p *pending) bool {
		if meant(p) {
			given = append(given, p)
			return true
		}
		return false
	})
	s.mu.Unlock()
	for _, p := range given {
		p.done(err)
	}
}

// batch is what is to be appended next; it stays in the queue.
func (s *shard) batch() (batch []*pending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	bytes, most := 0, min(batchBlocks, int(firstOf(sliceOf(s.at)+1)-s.at))
	for _, p := range s.queue {
		if len(batch) == most || len(batch) > 0 && bytes+len(p.block) > batchBytes {
			break
		}
		bytes += len(p.block)
		batch = append(batch, p)
	}
	return batch
}

// cachedFirst is first, as it was when it was asked first: it only grows.
func (s *shard) cachedFirst(ctx context.Context, end int64) (int64, error) {
	s.mu.Lock()
	begins, started := s.begins, s.started
	s.mu.Unlock()
	if started {
		return begins, nil
	}
	begins, err := s.first(ctx, end)
	if err == nil {
		s.mu.Lock()
		s.begins, s.started = begins, true
		s.mu.Unlock()
	}
	return begins, err
}

// run goes on from a position until ctx ends, or the log is not as it was read.
func (s *shard) run(
	ctx context.Context, from claimlog.Position, found chan<- []claimlog.Entry,
) error {
	s.at, s.last, s.found = from.Next, row{}, found
	if err := s.readLast(ctx); err != nil {
		return err
	}
	poll, tries, well := leastPoll, 0, time.Now()
	why := errSlow
	for ctx.Err() == nil {
		s.giveUp(why, func(p *pending) bool { return time.Now().After(p.until) })
		batch := s.batch()
		read, err := s.turn(ctx, batch)
		if err != nil {
			if definite(err) || time.Since(well) > appendTimeout {
				return err
			}
			why = err
			s.rest(ctx, min(leastPoll<<min(tries, 6), mostPoll), false)
			tries++
			continue
		}
		why, tries, well = errSlow, 0, time.Now()
		switch {
		case read > 0:
			poll = leastPoll
		case len(batch) > 0:
			s.rest(ctx, leastPoll, false)
		default:
			s.rest(ctx, poll, true)
			poll = min(2*poll, mostPoll)
		}
	}
	return context.Cause(ctx)
}

var errSlow = errors.New("other processes were faster again and again")

// readLast reads what is in front of the place at which reading begins.
func (s *shard) readLast(ctx context.Context) error {
	if s.at == 0 {
		return nil
	}
	r, found, err := s.row(ctx, s.at-1)
	if err != nil || !found {
		return err
	}
	r.block = nil
	s.last = r
	return nil
}

// turn appends what waits, or reads on. It tells how many blocks were read.
func (s *shard) turn(ctx context.Context, batch []*pending) (read int, err error) {
	slice, behind := sliceOf(s.at), s.behind()
	known := s.last.mark != 0 || s.at == firstOf(slice)
	if len(batch) > 0 && known && !behind {
		return s.append(ctx, batch)
	}
	if read, err = s.page(ctx, false); err == nil && read == 0 && behind {
		read, err = s.mustPage(ctx)
	}
	switch {
	case err != nil || read > 0:
		return read, err
	case len(batch) > 0 && !known:
		return s.stranded(ctx, slice)
	case time.Since(s.quiet) >= checkEvery:
		s.quiet = time.Now()
		return s.compare(ctx)
	}
	return 0, nil
}

// behind tells that there surely are blocks that were not read.
func (s *shard) behind() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at < s.want
}

// rest waits, about so long, or until there is something to do.
func (s *shard) rest(ctx context.Context, long time.Duration, wakes bool) {
	timer := time.NewTimer(long/2 + rand.N(long/2+1))
	defer timer.Stop()
	wake := s.wake
	if !wakes {
		wake = nil
	}
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
	}
}

// show hands blocks over that follow on what was read. Those of this process are done with that.
func (s *shard) show(ctx context.Context, rows []row) error {
	if len(rows) == 0 {
		return nil
	}
	entries := make([]claimlog.Entry, len(rows))
	for i, r := range rows {
		if r.seq != s.at+int64(i) {
			return fmt.Errorf("%w: behind place %d comes place %d", claimlog.ErrCut,
				s.at+int64(i)-1, r.seq)
		}
		front := s.last.mark
		if i > 0 {
			front = rows[i-1].mark
		}
		if r.after != 0 && front != 0 && r.after != front {
			return fmt.Errorf("%w: place %d was not written behind what is at place %d; %s",
				claimlog.ErrCut, r.seq, r.seq-1, lostRemedy)
		}
		entries[i] = claimlog.Entry{Shard: s.number, At: r.seq, Time: r.time, Ends: r.ends,
			Block: r.block}
	}
	if err := s.log.verified(ctx); err != nil {
		return err // the next turn reads the blocks again
	}
	s.log.lookAtTime(rows[len(rows)-1].time)
	select {
	case s.found <- entries:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s.last = rows[len(rows)-1]
	s.last.block = nil
	s.at = s.last.seq + 1
	s.quiet = time.Now()
	s.giveUp(nil, func(p *pending) bool {
		return slices.ContainsFunc(rows, func(r row) bool { return r.mark == p.mark })
	})
	return nil
}

// page reads on from where the shard was read up to. A block that was committed on a quorum is
// seen. Of one that is still being decided nobody was told; a serial read decides it.
func (s *shard) page(ctx context.Context, serial bool) (int, error) {
	ask := s.log.session.Read
	if serial {
		ask = s.log.session.Serial
	}
	iter := ask(ctx, s.log.statements.page, append(s.partition(sliceOf(s.at)), s.at)...).
		PageSize(pageSize).Iter()
	var rows []row
	var data []byte
	for r := (row{}); iter.Scan(&r.seq, &data); data = nil {
		if err := r.parse(data); err != nil {
			return 0, errors.Join(err, iter.Close())
		}
		rows = append(rows, r)
	}
	if err := iter.Close(); err != nil {
		return 0, fmt.Errorf("read on from place %d: %w", s.at, err)
	}
	if !serial {
		// Replicas may have answered at different times, so that a block is missing in front of one
		// that is there.
		for i, r := range rows {
			if r.seq != s.at+int64(i) {
				if i == 0 {
					return s.page(ctx, true)
				}
				rows = rows[:i]
				break
			}
		}
	}
	return len(rows), s.show(ctx, rows)
}

// compare finds out whether what was read last still is the end of the shard, if there seems to be
// nothing behind it.
func (s *shard) compare(ctx context.Context) (read int, err error) {
	slice, last := sliceOf(s.at), int64(0)
	if s.at != firstOf(slice) {
		if last, err = s.lastMark(ctx, slice); err != nil {
			return 0, err
		}
	}
	at, _, err := s.pointer(ctx)
	switch {
	case err != nil:
		return 0, err
	case at > slice || last != 0 && last != s.last.mark:
		return s.mustPage(ctx) // they may have come after the page was read
	case last == 0:
		return 0, s.compareNone(slice)
	}
	return 0, nil
}

// compareNone is compare for a slice that seems to have no block.
func (s *shard) compareNone(slice int64) error {
	if s.at != firstOf(slice) && s.last.mark != 0 &&
		s.last.ends > s.log.now().Add(clockTolerance).UnixMilli() {
		return fmt.Errorf("%w: the blocks up to place %d are gone before their time; %s",
			claimlog.ErrCut, s.at-1, lostRemedy)
	}
	return nil
}
