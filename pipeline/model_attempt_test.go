package pipeline

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/forwarder"
)

// modelAttempt is a batch on its way, with what the model saw of it.
type modelAttempt struct {
	number   int
	session  *modelSession
	batch    *consumer.Batch
	sources  []*modelSource
	rewinds  []int // of each input partition, when the batch was polled
	answers  map[dedup.ID]*modelEpisode
	wrote    []destination // by source
	became   []Outcome     // by source, once assessed
	outcomes [len(outcomeNames)]int
	settled  bool
	zombie   bool // at_least_once: its session was given up when it had written the fences
}

// destination is a set of topics.
type destination uint8

const (
	toClean destination = 1 << iota
	toDuplicates
	toDead
)

func (a *modelAttempt) String() string {
	text := fmt.Sprintf("batch %d of lane %d", a.number, a.session.lane.slot)
	for _, s := range a.batch.Spans {
		text += fmt.Sprintf(" %d@[%d,%d)", s.Partition, s.First, s.Next)
	}
	return text
}

func (w *modelWorld) newAttempt(s *modelSession, b *consumer.Batch) *modelAttempt {
	w.attempts++
	a := &modelAttempt{
		number: w.attempts, session: s, batch: b, answers: make(map[dedup.ID]*modelEpisode),
		wrote: make([]destination, len(b.Records)),
	}
	for _, r := range b.Records {
		a.sources = append(a.sources, w.bySource[r.Timestamp.UnixMilli()])
	}
	for _, p := range w.input {
		a.rewinds = append(a.rewinds, p.rewinds)
	}
	return a
}

// asked checks a claim: it is by a record of the batch, for its own ID, and not decided yet.
func (a *modelAttempt) asked(c *dedup.Claim) {
	s := a.session
	s.must(a.answers[c.ID] == nil, "a claim that was decided is claimed again")
	s.must(slices.ContainsFunc(a.sources, func(r *modelSource) bool { return r.id == c.ID && r.owner() == c.Owner }),
		"a claim by no record of the batch")
}

func (w *modelWorld) sourceAt(c dedup.Coordinates) *modelSource {
	return w.input[c.Partition].from(c.Offset)[0]
}

// checkProduced finds where a record comes from and compares it byte for byte.
func (w *modelWorld) checkProduced(a *modelAttempt, r *kgo.Record) *modelSource {
	s := w.bySource[r.Timestamp.UnixMilli()]
	if s == nil || !slices.Contains(a.sources, s) {
		w.failf("a record on %s[%d] is none of the batch in hand", r.Topic, r.Partition)
	}
	in := s.record
	if r.Partition != in.Partition || !sameBytes(r.Key, in.Key) || !sameBytes(r.Value, in.Value) || !w.headersFit(a, s, r) {
		w.failf("%v was changed on its way to %s", s, r.Topic)
	}
	return s
}

func sameBytes(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// headersFit: on the clean topic nothing is added, unless by mode annotate or without an answer of
// the store. On other topics there is more.
func (w *modelWorld) headersFit(a *modelAttempt, s *modelSource, r *kgo.Record) bool {
	n := len(s.record.Headers)
	if len(r.Headers) < n || !slices.EqualFunc(s.record.Headers, r.Headers[:n], sameHeader) {
		return false
	}
	added := r.Headers[n:]
	switch {
	case r.Topic == topicDead:
		return len(added) > 0 && added[0].Key == forwarder.HeaderReason
	case r.Topic == topicDuplicates, w.mix.policy.Mode == Annotate, s.id != "" && a.answers[s.id] == nil:
		return slices.ContainsFunc(added, func(h kgo.RecordHeader) bool { return h.Key == forwarder.HeaderVerdict })
	}
	return len(added) == 0
}

func sameHeader(a, b kgo.RecordHeader) bool { return a.Key == b.Key && sameBytes(a.Value, b.Value) }

// written notes that the brokers took a record.
func (w *modelWorld) written(p modelPending) {
	a := p.entry.attempt
	if p.topic == topicFence {
		w.fenceWritten(a, p.partition)
		return
	}
	to := map[string]destination{topicClean: toClean, topicDuplicates: toDuplicates, topicDead: toDead}[p.topic]
	i := slices.Index(a.sources, p.entry.source)
	if a.wrote[i]&to != 0 {
		w.failf("%v is twice on %s in one batch", p.entry.source, p.topic)
	}
	a.wrote[i] |= to
	if e := a.answers[p.entry.source.id]; e != nil && e.owner == p.entry.source && to != toDuplicates && e.sent == nil {
		e.sent = a
	}
}

// fenceWritten: with at_least_once a fence counts as soon as it is written, if its writer still owns
// the partition: the next owner reads it.
func (w *modelWorld) fenceWritten(a *modelAttempt, partition int32) {
	if w.mix.transactional {
		return
	}
	if w.group.owner[partition] != a.session {
		w.saw(sightZombieFence)
		w.trace(a.session.lane.slot, "writes a fence for partition %d, which it does not own any more", partition)
		return
	}
	for i, s := range a.sources {
		if s.record.Partition == partition {
			a.finish(i)
		}
	}
}

// finish notes that the owner of an ID was forwarded for good.
func (a *modelAttempt) finish(i int) {
	s := a.sources[i]
	if a.wrote[i]&(toClean|toDead) == 0 || s.id == "" {
		return
	}
	e := a.answers[s.id]
	if e == nil || e.owner == s {
		s.passed = true
	}
	if e != nil && e.owner == s && e.final == nil {
		e.final = a
	}
}
