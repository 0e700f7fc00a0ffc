package pipeline

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/consumer"
)

// Produce implements Session. Records are kept until a flush, or are sent some time before.
func (s *modelSession) Produce(_ context.Context, r *kgo.Record, promise func(*kgo.Record, error)) {
	s.must(s.begun, "produce without Begin")
	s.must(r.Topic == topicClean || r.Topic == topicDead || r.Topic == topicDuplicates, "produce to an unknown topic")
	e := &modelEntry{record: r, attempt: s.attempt, source: s.w.checkProduced(s.attempt, r)}
	s.buffer = append(s.buffer, modelPending{r.Topic, r.Partition, e, func(err error) { promise(r, err) }})
	if s.w.dice.oneIn(8) {
		s.lane.pause()
		s.sendRun()
	}
}

// Flush implements Session.
func (s *modelSession) Flush(context.Context) error {
	for len(s.buffer) > 0 {
		s.lane.pause()
		if s.w.fault(faultFlush) {
			return context.DeadlineExceeded
		}
		s.sendRun()
	}
	return nil
}

// produceFences adds the fences of the batch in hand.
func (s *modelSession) produceFences(b *consumer.Batch) {
	for _, span := range b.Spans {
		promise := func(err error) {
			if err != nil {
				s.fenceFailed = err
			}
		}
		entry := &modelEntry{fence: span.Fence(), attempt: s.attempt}
		s.buffer = append(s.buffer, modelPending{topicFence, span.Partition, entry, promise})
	}
}

// nextRun takes records of one partition of one topic out of the buffer, in their order. Partitions
// have their batches sent in any order, each in its own.
func (s *modelSession) nextRun() (run []modelPending) {
	chosen := s.buffer[s.w.dice.n(len(s.buffer))]
	most := 1 + s.w.dice.n(len(s.buffer))
	rest := make([]modelPending, 0, len(s.buffer))
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
func (s *modelSession) sendRun() {
	run := s.nextRun()
	if !s.w.fault(faultProduce) {
		s.send(run, nil)
		return
	}
	switch s.w.dice.n(3) {
	case 0:
		s.w.trace(s.lane.slot, "%d records to %s[%d] fail unwritten", len(run), run[0].topic, run[0].partition)
		for _, p := range run {
			p.promise(errModelProduce)
		}
	case 1:
		s.w.trace(s.lane.slot, "%d records to %s[%d] fail although they are written", len(run), run[0].topic, run[0].partition)
		s.send(run, errModelProduce)
	default:
		s.w.trace(s.lane.slot, "the first record to %s[%d] fails", run[0].topic, run[0].partition)
		run[0].promise(errModelProduce)
		s.send(run[1:], nil)
	}
}

// send writes a run and acknowledges it with the error, if the brokers took it.
func (s *modelSession) send(run []modelPending, lost error) {
	for _, p := range run {
		err := s.append(p.topic, p.entry, p.partition)
		if err == nil {
			s.w.written(p)
			err = lost
		}
		p.promise(err)
	}
}
