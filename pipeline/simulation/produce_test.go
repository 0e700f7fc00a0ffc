//go:build !race

package simulation

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/fence"
)

// pending is a record that was handed to the producer and not sent yet.
type pending struct {
	topic     string
	partition int32
	entry     *entry
	promise   func(error)
}

// Produce implements consumer.Client. Records are kept until a flush.
func (s *client) Produce(_ context.Context, r *kgo.Record, promise func(*kgo.Record, error)) {
	s.pause("produce", nil)
	s.must(!s.w.mix.transactional || s.begun, "produce outside of a transaction")
	s.must(s.attempt != nil, "produce without a batch")
	e := &entry{record: r, attempt: s.attempt}
	if r.Topic == topicFence {
		s.parseFence(e)
	} else {
		e.source = s.w.checkProduced(s.attempt, r)
	}
	s.buffer = append(s.buffer, pending{r.Topic, r.Partition, e, func(err error) {
		promise(r, err)
	}})
}

// parseFence finds out whether the fence tells of the batch in hand, or of what was before.
func (s *client) parseFence(e *entry) {
	parsed, err := fence.Parse(e.record)
	if err != nil {
		s.w.failf("a fence that cannot be read: %v", err)
	}
	e.fence, e.restores = parsed, true
	for i := range s.attempt.batch.Spans {
		span := &s.attempt.batch.Spans[i]
		if span.Partition == e.record.Partition && parsed.Next() >= span.Next {
			e.restores = false
		}
	}
}

// Flush implements consumer.Client.
func (s *client) Flush(ctx context.Context) error {
	for len(s.buffer) > 0 {
		s.pause("flush", func() bool { return ctx.Err() != nil || !s.w.away[clusterOfOutput] })
		if ctx.Err() != nil || s.w.fault(faultFlush) {
			return context.DeadlineExceeded
		}
		s.sendRun()
	}
	return nil
}

// nextRun takes records of one partition of one topic out of the buffer, in their order. Partitions
// have their batches sent in any order, each in its own.
func (s *client) nextRun() (run []pending) {
	chosen := s.buffer[s.w.dice.n(len(s.buffer))]
	most := 1 + s.w.dice.n(len(s.buffer))
	rest := make([]pending, 0, len(s.buffer))
	for _, p := range s.buffer {
		if p.topic == chosen.topic && p.partition == chosen.partition && len(run) < most {
			run = append(run, p)
		} else {
			rest = append(rest, p)
		}
	}
	s.buffer = rest
	return run
}

// sendRun sends a run, which may fail as a whole, before or after it was written, or for its first
// record only.
func (s *client) sendRun() {
	run := s.nextRun()
	if err := s.w.refusalOf(run); err != nil {
		s.refuse(run, err)
		return
	}
	if !s.w.fault(faultProduce) {
		s.send(run, nil)
		return
	}
	switch s.w.dice.n(3) {
	case 0:
		s.w.trace(s.process.slot, "%d records to %s[%d] fail unwritten", len(run), run[0].topic,
			run[0].partition)
		for _, p := range run {
			p.promise(errProduce)
		}
	case 1:
		s.w.trace(s.process.slot, "%d records to %s[%d] fail although they are written", len(run),
			run[0].topic, run[0].partition)
		s.send(run, errProduce)
	default:
		s.w.trace(s.process.slot, "the first record to %s[%d] fails", run[0].topic,
			run[0].partition)
		run[0].promise(errProduce)
		s.send(run[1:], nil)
	}
}

// refusalOf is what the topic says of a run. Times ahead are refused everywhere, invalid records on
// all topics but that for dead letters.
func (w *world) refusalOf(run []pending) error {
	if w.deadGone && run[0].topic == topicDead {
		return kerr.UnknownTopicOrPartition
	}
	for _, p := range run {
		switch s := p.entry.source; {
		case s == nil: // a fence
		case p.entry.record.Timestamp.UnixMilli() >= tooFarAhead:
			return kerr.InvalidTimestamp
		case s.invalid && p.topic != topicDead:
			return kerr.InvalidRecord
		}
	}
	return nil
}

// refuse fails a run that its topic does not take, and with it what is behind it on its partition.
func (s *client) refuse(run []pending, err error) {
	s.w.saw(sightRefused)
	s.w.trace(s.process.slot, "%s[%d] refuses %d records: %v", run[0].topic, run[0].partition,
		len(run), err)
	rest := make([]pending, 0, len(s.buffer))
	for _, p := range s.buffer {
		if p.topic == run[0].topic && p.partition == run[0].partition {
			run = append(run, p)
		} else {
			rest = append(rest, p)
		}
	}
	s.buffer = rest
	for _, p := range run {
		p.promise(err)
	}
}

// send writes a run and acknowledges it with the error, if the brokers took it.
func (s *client) send(run []pending, lost error) {
	for _, p := range run {
		err := s.append(p.topic, p.entry, p.partition)
		if err == nil {
			s.w.written(p)
			err = lost
			if a := p.entry.attempt; err == nil && p.topic != topicFence {
				a.acked[slices.Index(a.sources, p.entry.source)] = true
			}
		}
		p.promise(err)
	}
}
