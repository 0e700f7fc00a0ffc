package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/lab/workload"
)

// reader notes when the records of the clean topic become visible.
type reader struct {
	client *kgo.Client
	cancel context.CancelFunc
	ended  chan struct{}
	count  atomic.Int64 // of different messages
	seen   []visible    // read it after ended
	err    error
}

type visible struct{ appended, at time.Time }

func openReader(ctx context.Context, s *stage) (*reader, error) {
	client, err := kgo.NewClient(append(s.outputConnection(), kgo.ConsumeTopics(s.output()),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMinBytes(1))...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &reader{client: client, cancel: cancel, ended: make(chan struct{})}
	go r.read(ctx)
	return r, nil
}

func (r *reader) read(ctx context.Context) {
	defer close(r.ended)
	messages := make(map[int]bool)
	for {
		fetches := r.client.PollFetches(ctx)
		at := time.Now()
		if ctx.Err() != nil {
			return
		}
		if err := fetches.Err(); err != nil {
			r.err = fmt.Errorf("read the clean topic: %w", err)
			return
		}
		for _, record := range fetches.Records() {
			r.seen = append(r.seen, visible{record.Timestamp, at})
			messages[workload.MessageOf(record)] = true
		}
		r.count.Store(int64(len(messages)))
	}
}

// lateLimit is how long the last record may take to the clean topic.
const lateLimit = 3 * time.Minute

// stop waits until every message was seen, also those that take long: they count most. It returns
// the delays of the records that were appended from a time on.
func (r *reader) stop(ctx context.Context, messages int, from time.Time) ([]time.Duration, error) {
	late := r.wait(ctx, messages)
	r.close()
	if late != nil {
		return nil, late
	}
	var delays []time.Duration
	for _, v := range r.seen {
		if v.appended.Before(from) {
			continue
		}
		if v.at.Before(v.appended) {
			return nil, errors.Join(r.err, fmt.Errorf("a record was visible %v before it was "+
				"appended: the clocks of the broker and of this machine disagree",
				v.appended.Sub(v.at)))
		}
		delays = append(delays, v.at.Sub(v.appended))
	}
	return delays, r.err
}

// failure says why nothing is read any more; nil while the reader works.
func (r *reader) failure() error {
	select {
	case <-r.ended:
		return cmp.Or(r.err, errors.New("the reader of the clean topic ended"))
	default:
		return nil
	}
}

func (r *reader) close() {
	r.cancel()
	<-r.ended
	r.client.Close()
}

func (r *reader) wait(ctx context.Context, messages int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, lateLimit,
		fmt.Errorf("not all records came within %v", lateLimit))
	defer cancel()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for r.count.Load() < int64(messages) {
		select {
		case <-tick.C:
		case <-r.ended:
			return r.failure()
		case <-ctx.Done():
			return fmt.Errorf("%d of %d messages are on the clean topic: %w", r.count.Load(),
				messages, context.Cause(ctx))
		}
	}
	return nil
}

// cpuWatch measures a process's share of a core.
type cpuWatch struct {
	process *process
	at      time.Time
	cpu     time.Duration
	err     error
}

func (w *cpuWatch) begin() {
	w.at = time.Now()
	w.cpu, w.err = cpuOf(w.process.cmd.Process.Pid)
}

// end returns the share since begin.
func (w *cpuWatch) end() (float64, error) {
	cpu, err := cpuOf(w.process.cmd.Process.Pid)
	return float64(cpu-w.cpu) / float64(time.Since(w.at)), errors.Join(w.err, err)
}
