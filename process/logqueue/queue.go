// Package logqueue writes the lines of a log behind a bounded queue. Nobody who logs waits for the
// reader of the log: where he is too slow, stands still or is gone, lines are dropped, counted and
// told once he takes lines again.
package logqueue

import (
	"bytes"
	"io"
	"sync"
	"time"
)

// mostBytes of lines wait at most: some thousand lines, the memory of one small batch.
const mostBytes = 1 << 20

// Queue is the writer of a log. Its goroutine is the only one that waits for the reader. It is safe
// for concurrent use.
type Queue struct {
	to     io.Writer
	notice func(lines uint64) []byte
	ended  chan struct{}

	mu      sync.Mutex
	changed *sync.Cond
	lines   [][]byte
	waiting int    // bytes of lines
	untold  uint64 // lines that were dropped before the first one that waits
	dropped uint64 // lines ever
	closed  bool
}

// New starts the goroutine that writes, which Close ends. Before the line that follows dropped ones
// it writes what notice makes of their number.
func New(to io.Writer, notice func(lines uint64) []byte) *Queue {
	q := &Queue{to: to, notice: notice, ended: make(chan struct{})}
	q.changed = sync.NewCond(&q.mu)
	go q.run()
	return q
}

// Write takes one line. It waits for nobody and never fails. Where there is no room, the oldest
// lines give way: the last ones say why a process has ended.
func (q *Queue) Write(line []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		q.dropLocked()
		return len(line), nil
	}
	for len(q.lines) > 0 && q.waiting+len(line) > mostBytes {
		q.takeLocked()
		q.dropLocked()
	}
	q.lines = append(q.lines, bytes.Clone(line))
	q.waiting += len(line)
	q.changed.Signal()
	return len(line), nil
}

// Dropped is how many lines nobody will read.
func (q *Queue) Dropped() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}

// Close writes what waits, for as long as its caller has patience. A goroutine that stands in a
// write ends with it, or with the process.
func (q *Queue) Close(patience time.Duration) {
	q.mu.Lock()
	q.closed = true
	q.changed.Signal()
	q.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-q.ended:
	case <-timer.C:
	}
}

func (q *Queue) run() {
	defer close(q.ended)
	for {
		line, untold, more := q.next()
		if untold > 0 && q.write(q.notice(untold)) {
			q.told(untold)
		}
		if !more {
			return
		}
		if !q.write(line) {
			q.mu.Lock()
			q.dropLocked()
			q.mu.Unlock()
		}
	}
}

func (q *Queue) write(line []byte) bool {
	_, err := q.to.Write(line)
	return err == nil
}

// next waits for a line. There is none more once the queue is closed and empty.
func (q *Queue) next() (line []byte, untold uint64, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.lines) == 0 && !q.closed {
		q.changed.Wait()
	}
	if len(q.lines) == 0 {
		return nil, q.untold, false
	}
	return q.takeLocked(), q.untold, true
}

func (q *Queue) takeLocked() (line []byte) {
	line, q.lines[0] = q.lines[0], nil
	q.lines = q.lines[1:]
	q.waiting -= len(line)
	return line
}

func (q *Queue) dropLocked() {
	q.untold++
	q.dropped++
}

func (q *Queue) told(lines uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.untold -= lines
}
