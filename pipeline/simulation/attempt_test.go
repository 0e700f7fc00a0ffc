//go:build !race

package simulation

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/forwarder"
	"github.com/kdedup/kdedup/pipeline"
)

// attempt is a batch on its way, with what the model saw of it.
type attempt struct {
	number   int
	client   *client
	batch    *consumer.Batch
	sources  []*source
	rewinds  []int // of each input partition, when the batch was polled
	answers  map[dedup.ID]*episode
	wrote    []destination      // by source
	said     []string           // by source: what was said of it there
	acked    []bool             // by source: and the session knows it
	became   []pipeline.Outcome // by source, once assessed
	outcomes [numOutcomes]int
	either   [numOutcomes]int // what may count as this instead
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

func (a *attempt) String() string {
	text := fmt.Sprintf("batch %d of lane %d", a.number, a.client.process.slot)
	for _, s := range a.batch.Spans {
		text += fmt.Sprintf(" %d@[%d,%d)", s.Partition, s.First, s.Next)
	}
	return text
}

func (w *world) newAttempt(s *client, b *consumer.Batch) *attempt {
	w.attempts++
	a := &attempt{
		number: w.attempts, client: s, batch: b, answers: make(map[dedup.ID]*episode),
		wrote: make([]destination, len(b.Records)), acked: make([]bool, len(b.Records)),
		said: make([]string, len(b.Records)),
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
func (a *attempt) asked(c *dedup.Claim) {
	s := a.client
	s.must(a.answers[c.ID] == nil, "a claim that was decided is claimed again")
	s.must(slices.ContainsFunc(a.sources, func(r *source) bool {
		return r.id == c.ID && r.owner().Same(c.Owner)
	}),
		"a claim by no record of the batch")
}

// checkProduced finds where a record comes from and compares it byte for byte.
func (w *world) checkProduced(a *attempt, r *kgo.Record) *source {
	s := w.bySource[r.Timestamp.UnixMilli()]
	if r.Topic != topicClean {
		s = a.sourceNamed(r)
	}
	if s == nil || !slices.Contains(a.sources, s) {
		w.failf("a record on %s[%d] is none of the batch in hand", r.Topic, r.Partition)
	}
	in := s.record
	sameKey := sameBytes(r.Key, in.Key) || r.Topic != topicClean && in.Key == nil &&
		r.Headers[len(r.Headers)-1].Key == forwarder.HeaderKey
	if r.Partition != in.Partition || !sameKey || !sameBytes(r.Value, in.Value) ||
		!w.headersFit(a, s, r) {
		w.failf("%v was changed on its way to %s", s, r.Topic)
	}
	return s
}

// sourceNamed is the record that the headers of a dead letter or a duplicate name.
func (a *attempt) sourceNamed(r *kgo.Record) *source {
	var partition, offset int
	for _, h := range r.Headers {
		switch h.Key {
		case forwarder.HeaderSourcePartition:
			partition, _ = strconv.Atoi(string(h.Value))
		case forwarder.HeaderSourceOffset:
			offset, _ = strconv.Atoi(string(h.Value))
		}
	}
	for _, s := range a.sources {
		n := len(s.record.Headers) // of two logs, a batch may have one offset twice
		if s.record.Partition == int32(partition) && s.record.Offset == int64(offset) &&
			len(r.Headers) >= n && sameBytes(s.record.Value, r.Value) &&
			slices.EqualFunc(s.record.Headers, r.Headers[:n], sameHeader) {
			return s
		}
	}
	return nil
}

func sameBytes(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// headersFit: on the clean topic nothing is added, unless by mode annotate or without an answer of
// the store. On other topics there is more.
func (w *world) headersFit(a *attempt, s *source, r *kgo.Record) bool {
	n := len(s.record.Headers)
	if len(r.Headers) < n || !slices.EqualFunc(s.record.Headers, r.Headers[:n], sameHeader) {
		return false
	}
	added := r.Headers[n:]
	switch {
	case r.Topic == topicDead:
		return len(added) > 0 && added[0].Key == forwarder.HeaderReason
	case s.kind == exempt:
		return len(added) == 0
	case r.Topic == topicDuplicates, w.mix.policy.Mode == pipeline.Annotate, s.id != "" &&
		a.answers[s.id] == nil:
		return slices.ContainsFunc(added, func(h kgo.RecordHeader) bool {
			return h.Key == forwarder.HeaderVerdict
		})
	}
	return len(added) == 0
}

func sameHeader(a, b kgo.RecordHeader) bool { return a.Key == b.Key && sameBytes(a.Value, b.Value) }

// written notes that the brokers took a record.
func (w *world) written(p pending) {
	a := p.entry.attempt
	if p.topic == topicFence {
		if !p.entry.restores {
			w.fenceWritten(a, p.partition)
		}
		return
	}
	to := map[string]destination{topicClean: toClean, topicDuplicates: toDuplicates,
		topicDead: toDead}[p.topic]
	i := slices.Index(a.sources, p.entry.source)
	if kept := a.client.kept[p.entry.source]; kept.to&to != 0 && kept.said == p.entry.says() {
		w.failf("%v is sent to %s again, though it was acknowledged", p.entry.source, p.topic)
	}
	if a.wrote[i]&to != 0 {
		w.failf("%v is twice on %s in one batch", p.entry.source, p.topic)
	}
	a.wrote[i] |= to
	a.said[i] = p.entry.says()
	if e := a.answers[p.entry.source.id]; e != nil && (e.owner == p.entry.source || e.owner.gone) &&
		to != toDuplicates && e.sent == nil {
		e.sent = a
	}
}

// says is what the headers of a record tell about it: why it is a dead letter, or its verdict.
func (e *entry) says() string {
	for _, h := range slices.Backward(e.record.Headers) { // those of the producer come first
		if h.Key == forwarder.HeaderReason || h.Key == forwarder.HeaderVerdict {
			return string(h.Value)
		}
	}
	return ""
}

// kept is where a record is, and what is said of it there.
type kept struct {
	to   destination
	said string
}

// keep notes what is written of a batch that is given back.
func (a *attempt) keep() {
	for i, s := range a.sources {
		if a.acked[i] {
			a.client.kept[s] = kept{a.wrote[i], a.said[i]}
		}
	}
}

// written is where a record is by this attempt, or was by an earlier one of the session.
func (a *attempt) written(i int) destination {
	if a.wrote[i] != 0 {
		return a.wrote[i]
	}
	return a.client.kept[a.sources[i]].to
}

// fenceWritten: with at_least_once a fence counts as soon as it is written, if its writer still
// owns the partition: the next owner reads it.
func (w *world) fenceWritten(a *attempt, partition int32) {
	if w.mix.transactional {
		return
	}
	zombie := w.group.owner[partition] != a.client
	if zombie {
		w.saw(sightZombieFence)
		w.trace(a.client.process.slot,
			"writes a fence for partition %d, which it does not own any more", partition)
	}
	for i, s := range a.sources {
		if s.record.Partition != partition {
			continue
		}
		s.handled = true
		if zombie {
			s.outlived = s.outlived || a.delivered(i)
		} else {
			a.finish(i)
		}
		// An earlier batch of the session may have sent it, for a claim that has expired since.
		if e := a.answers[s.id]; e != nil && e.owner == s && e.sent == nil &&
			a.delivered(i) {
			e.sent = a
		}
	}
}

// delivered tells that a record went to the clean or the dead-letter topic, or was dropped in place
// of that: an operator said so, or the policy about what is undeliverable.
func (a *attempt) delivered(i int) bool {
	_, skipped := a.batch.Skipped(i)
	return a.written(i)&(toClean|toDead) != 0 || skipped || a.sources[i].undeliverable() &&
		a.client.w.mix.policy.OnUndeliverable == pipeline.DropUndeliverable
}

// finish notes that the owner of an ID was forwarded for good.
func (a *attempt) finish(i int) {
	s, w := a.sources[i], a.client.w
	if !a.delivered(i) || s.id == "" {
		return
	}
	e := a.answers[s.id]
	if e == nil || e.owner == s {
		s.passed = true
	}
	// A copy that an operator skipped is not known to have stood for the owner: behind the fence it
	// counts as a copy.
	_, skipped := a.batch.Skipped(i)
	if e != nil && e.final == nil && (e.owner == s ||
		e.owner.gone && !skipped && !w.conflicts(e, s)) {
		e.final = a // by the owner, or by a copy that stands for it
	}
}

// conflicts tells that a copy may have been sent for the content that is its own, by policy. Then
// it does not stand for the owner.
func (w *world) conflicts(e *episode, s *source) bool {
	return w.mix.policy.OnConflict != pipeline.Drop && !e.owner.sameContent(s)
}
