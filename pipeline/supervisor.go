package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/outage"
	"github.com/kdedup/kdedup/internal/pause"
)

// supervisor keeps a lane at work: it joins, and joins again after a failure.
type supervisor struct {
	number   int
	options  *Options
	judge    Judge
	metrics  *Metrics
	dropped  *droppedCopies   // of the pipeline
	failing  *outage.Reporter // logs that the lane fails
	stopping *outage.Reporter // and that it cannot go on
	log      *slog.Logger

	mu       sync.Mutex
	session  Session   // nil while there is none
	since    time.Time // of session
	last     error     // of the last session that failed
	lastAt   time.Time // when it failed
	failures int       // in a row, without a committed batch
	failure  Failure   // the last one, kept after a recovery
	stopped  bool

	// Of the goroutine that runs it.
	identified bool // a message ID was seen
	odd        oddLog
}

const (
	firstPause = 200 * time.Millisecond
	longPause  = 15 * time.Second

	// A lane that failed this often in a row is not ready although it joins again and again,
	// until it commits a batch or stays whole for the probation.
	fewFailures = 3
	probation   = 2 * longPause
)

// run returns nil after polling has ended and the last session is closed.
func (s *supervisor) run(polling, work context.Context) error {
	defer s.failing.Forget()
	next := firstPause
	for polling.Err() == nil {
		committed, err := s.serve(polling, work)
		if err == nil {
			continue
		}
		if classify(err) == stop {
			s.remember(err, true)
			s.stopping.Report(err, "hint", hint(err))
			return err
		}
		if committed {
			next = firstPause
		}
		s.remember(err, false)
		s.failed(err, next)
		s.options.wait(polling, next)
		next = min(2*next, longPause)
	}
	return s.unfinished(work)
}

var errUnfinished = errors.New("the batch in hand was given up after shutdown_timeout; it will " +
	"be delivered again")

// unfinished reports a batch that shutdown_timeout cut off. It is lost to nobody: its offsets are
// not committed.
func (s *supervisor) unfinished(work context.Context) error {
	if work.Err() == nil {
		return nil
	}
	return errUnfinished
}

// serve works on one session until it fails or polling ends.
func (s *supervisor) serve(polling, work context.Context) (committed bool, err error) {
	session, topics, err := s.options.Join(polling, s.number)
	if err != nil && polling.Err() != nil {
		return false, nil // the end interrupted it: nothing failed
	}
	if err != nil {
		return false, err
	}
	s.entered(session)
	defer s.left(session)
	watched, judge := crashing(session, s.judge)
	l := &lane{
		number: s.number, session: watched, judge: judge, policy: s.options.Policy,
		topics:  topics,
		metrics: s.metrics, tracer: s.options.tracer(), log: s.log, identify: s.identify,
		odd: &s.odd, dropped: s.dropped,
		conflicts: comparing{compare: s.options.compares()},
	}
	for polling.Err() == nil {
		err := l.turn(polling, work)
		switch {
		case err == nil:
			committed = true
			s.succeeded(polling)
			if topics.Outdated() {
				s.log.Info("joining again to read the limits of its topics: one was lowered")
				return committed, nil
			}
		case classify(err) == proceed:
			s.log.Info("batch given back", "reason", err)
		case polling.Err() != nil && errors.Is(err, context.Canceled) && classify(err) != stop:
			return committed, nil // the end interrupted it, too
		default:
			return committed, err
		}
	}
	return committed, nil
}

// ErrNoIDs says that a batch was given back because the input shows no message ID anywhere.
var ErrNoIDs = errors.New("nothing is forwarded while no record has a message ID: correct " +
	"message_id, and the next reload goes on")

// identify returns an error as long as neither the batches nor the input have shown a message ID. A
// setting that finds nothing would send all of the input to the dead-letter topic.
func (s *supervisor) identify(ctx context.Context, judgements []dedup.Judgement) error {
	if s.identified || s.options.Identify == nil {
		return nil
	}
	missing := false
	for _, j := range judgements {
		switch j.Verdict {
		case dedup.VerdictExempt, dedup.VerdictTombstone: // they tell nothing
		case dedup.VerdictMissing:
			missing = true
		default:
			s.identified = true
			return nil
		}
	}
	if !missing {
		return nil // also with nothing but markers
	}
	if err := s.options.Identify(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrNoIDs, err)
	}
	s.identified = true
	return nil
}

func (s *supervisor) entered(session Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session, s.since = session, time.Now()
	s.metrics.joined()
}

func (s *supervisor) left(session Session) {
	s.mu.Lock()
	s.session = nil
	s.metrics.up.Set(0)
	s.mu.Unlock()
	session.Close()
}

// succeeded also comes without a batch, with the end of polling, which proves nothing.
func (s *supervisor) succeeded(polling context.Context) {
	s.mu.Lock()
	failed := s.last != nil
	s.last, s.failures = nil, 0
	s.mu.Unlock()
	if failed && polling.Err() == nil {
		s.failing.Recovered()
	}
}

func (s *supervisor) failed(err error, pause time.Duration) {
	s.mu.Lock()
	s.last, s.lastAt = err, time.Now()
	s.failures++
	s.mu.Unlock()
	s.metrics.laneFailed(err)
	s.log.Debug("lane failed", "error", err, "pause", pause)
	s.failing.Report(err, "hint", hint(err))
}

// healthy reports since when a lane that failed has been a member of its group again, and whether
// it has stayed one for the probation. Lanes that commit batches call Recovered themselves.
func (s *supervisor) healthy() (since time.Time, healthy bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.since, s.session != nil && s.session.Joined() && time.Since(s.since) >= probation
}

func (s *supervisor) ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.session != nil && s.session.Joined() && !s.failingLocked():
		return nil
	case s.last != nil:
		return s.last
	default:
		return errors.New("has not joined the consumer group yet")
	}
}

func (s *supervisor) failingLocked() bool {
	return s.failures >= fewFailures && time.Since(s.lastAt) < probation
}

// wait pauses before a lane joins again: jittered, so that lanes and processes do not come back in
// step.
func (o *Options) wait(ctx context.Context, d time.Duration) {
	if o.Pause != nil {
		o.Pause(ctx, d)
		return
	}
	pause.For(ctx, d/2+rand.N(d/2))
}
