package hashlog

import (
	"context"
	"sync"
)

// Mark stands for what was appended until then.
type Mark uint64

// syncs share the syncs of a file: one runs at a time, and appends that come meanwhile share the
// next one.
type syncs struct {
	sync func() error
	err  func() error // why nothing can be synced any more

	mu       sync.Mutex
	appended Mark
	synced   Mark
	current  *syncRun // nil: none runs
	running  sync.WaitGroup
}

type syncRun struct{ done chan struct{} }

// note counts one more thing appended. It is called in the order of the file.
func (s *syncs) note() Mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.appended++
	return s.appended
}

func (s *syncs) latest() Mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.appended
}

// reached says that everything up to a mark is durable.
func (s *syncs) reached(m Mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.synced = max(s.synced, m)
}

// wait returns when everything up to the mark is durable. After an error it may be or not.
func (s *syncs) wait(ctx context.Context, m Mark) error {
	for {
		run := s.join(m)
		if run == nil {
			return nil
		}
		select {
		case <-run.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := s.err(); err != nil {
			return err
		}
	}
}

// join returns the sync that runs, and begins one if none does; nil once the mark is reached.
func (s *syncs) join(m Mark) *syncRun {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m <= s.synced {
		return nil
	}
	if s.current == nil {
		s.current = &syncRun{done: make(chan struct{})}
		run, until := s.current, s.appended
		s.running.Go(func() { s.perform(run, until) })
	}
	return s.current
}

func (s *syncs) perform(run *syncRun, until Mark) {
	err := s.sync()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.synced = max(s.synced, until)
	}
	s.current = nil
	close(run.done)
}

// Latest stands for all that can be seen now.
func (l *Log) Latest() Mark { return l.syncs.latest() }

// Sync returns when everything up to the mark is durable. After an error it may be or not.
func (l *Log) Sync(ctx context.Context, m Mark) error {
	if err := l.Err(); err != nil {
		return err
	}
	return l.syncs.wait(ctx, m)
}

// syncActive need not look at full segments: the change from one to the next syncs them, and then
// an error here is that of a file that was deleted since.
func (l *Log) syncActive() error {
	l.mu.RLock()
	s := l.active
	l.mu.RUnlock()
	if err := s.sync(); err != nil && !s.synced.Load() {
		return l.fail(err)
	}
	return nil
}
