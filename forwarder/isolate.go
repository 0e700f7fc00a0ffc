package forwarder

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A broker refuses a whole batch for one record, and the client fails with it all that is behind it
// on its partition. KIP-467 has the broker name the record, but the client does not pass that on.
// So the record is looked for: of what was not written, less and less is sent, until one record is
// refused alone.
//
// What was written stays written, in either delivery: a refusal ends no transaction, and of a
// partition exactly those records are missing that have failed. What was in flight behind a refused
// batch does not fit its sequence numbers, and is refused as well. So the rest is sent behind what
// was written, and the order holds.

// letter is a record on its way to a topic.
type letter struct {
	out    *kgo.Record
	polled *kgo.Record
	reason string // of a dead letter
	form   form
}

// queue holds what is not written yet of one partition of a topic, in order. Where the partition of
// a record is the client's to choose, it is that of the whole topic.
type queue struct {
	letters []letter
	suspect int // one of the first n is refused; 0: nothing is known
	chunk   int // how many are sent next
	sent    int // how many were sent last, and are still in it
	found   int // how many were refused alone
}

type isolator struct {
	*Outgoing
	to     Producer
	rules  Isolation
	queues []*queue
	byKey  map[destination]*queue
	failed failures
	finds  int // records that were refused alone
	began  time.Time
	taken  map[int32]*times // by partition of the clean topic
}

type destination struct {
	topic     string
	partition int32 // -1: any
}

func (o *Outgoing) isolate(
	ctx context.Context, to Producer, began time.Time, errs map[*kgo.Record]error, rules Isolation,
) error {
	s := &isolator{
		Outgoing: o, to: to, rules: rules, began: began, byKey: make(map[destination]*queue),
		taken: make(map[int32]*times),
	}
	o.open, o.buried = make(map[*kgo.Record]bool, len(errs)), make(map[*kgo.Record]string)
	for i := range o.records {
		if errs[&o.records[i]] != nil {
			o.open[o.polled[i]] = true
		}
	}
	for i := range o.records {
		out := &o.records[i]
		err, failed := errs[out]
		if !failed {
			s.took(out)
			continue
		}
		l := letter{out: out, polled: o.polled[i]}
		if out.Topic == o.topics.DeadLetter {
			l.reason, l.form.stub = describe(out)
		}
		if !isRefusal(err) {
			return s.giveUp(l, err)
		}
		s.put(l)
	}
	for _, q := range s.queues {
		q.refused(len(q.letters))
	}
	for _, err := range errs {
		if ReasonOf(err, &kgo.Record{}) == ReasonTooLarge {
			o.topics.outdated = true
		}
	}
	for {
		if sending, err := s.round(ctx); !sending || err != nil {
			return err
		}
	}
}

// describe reads a dead letter's headers.
func describe(out *kgo.Record) (reason string, stub bool) {
	for _, h := range out.Headers {
		switch h.Key {
		case HeaderReason:
			reason = string(h.Value) // the last one is ours
		case HeaderSourceSHA256:
			stub = true
		}
	}
	return reason, stub
}

// put queues a letter behind what goes to the same place.
func (s *isolator) put(l letter) {
	to := destination{l.out.Topic, -1}
	if l.out.Topic == s.topics.Output && !s.topics.ByKey {
		to.partition = l.out.Partition
	}
	q := s.byKey[to]
	if q == nil {
		q = &queue{}
		s.byKey[to], s.queues = q, append(s.queues, q)
	}
	if q.letters = append(q.letters, l); q.suspect == 0 {
		q.chunk = len(q.letters)
	}
}

// round sends a chunk of each queue and learns from what comes of it. It reports false when there
// is nothing left to send.
func (s *isolator) round(ctx context.Context) (bool, error) {
	sent := 0
	for _, q := range s.queues {
		for i := range q.letters[:q.chunk] {
			s.to.Produce(ctx, q.letters[i].out, s.failed.promise)
		}
		q.sent = q.chunk
		sent += q.sent
	}
	if sent == 0 {
		return false, nil
	}
	if err := s.to.Flush(ctx); err != nil {
		return false, fmt.Errorf("flush: %w", err)
	}
	errs := s.failed.take()
	s.noteWritten(errs)
	for _, q := range slices.Clone(s.queues) { // dead letters may begin another one
		if err := s.learn(q, errs); err != nil {
			return false, err
		}
	}
	if s.finds > 0 && s.more() && !s.rules.Until.IsZero() && time.Now().After(s.rules.Until) {
		return false, ErrUnfinished
	}
	return true, nil
}

// noteWritten comes before anything is concluded, which may end the search.
func (s *isolator) noteWritten(errs map[*kgo.Record]error) {
	for _, q := range s.queues {
		for _, l := range q.letters[:q.sent] {
			if errs[l.out] == nil {
				delete(s.open, l.polled)
			}
		}
	}
}

func (s *isolator) more() bool {
	return slices.ContainsFunc(s.queues, func(q *queue) bool { return len(q.letters) > 0 })
}

// learn takes what was written out of the queue, and the record that is refused if it is known now.
func (s *isolator) learn(q *queue, errs map[*kgo.Record]error) error {
	sent := q.sent
	if sent == 0 {
		return nil
	}
	q.sent = 0
	var open []letter
	for _, l := range q.letters[:sent] {
		err, failed := errs[l.out]
		switch {
		case !failed:
			s.took(l.out)
		case !isRefusal(err):
			return s.giveUp(l, err)
		default:
			open = append(open, l)
		}
	}
	q.letters = q.letters[sent-len(open):]
	copy(q.letters, open)
	switch len(open) {
	case 0:
		q.taken(sent)
	case 1: // its batch held nothing else
		return s.found(q, errs[open[0].out])
	default:
		q.refused(len(open))
	}
	return nil
}

// taken is told that a chunk was written.
func (q *queue) taken(n int) {
	if q.suspect > n {
		q.suspect -= n
		q.chunk = (q.suspect + 1) / 2
		return
	}
	q.suspect = 0 // together they were too large for one batch
	q.chunk = min(2*n, len(q.letters))
}

// refused is told that one of the first n was refused.
func (q *queue) refused(n int) {
	q.suspect = n
	q.chunk = (n + 1) / 2
}

// found is told that the first record of the queue is refused alone.
func (s *isolator) found(q *queue, refusal error) error {
	l := q.letters[0]
	q.letters = q.letters[1:]
	q.found++
	s.finds++
	// Where one is, more may be: the more were found, the smaller are the first steps behind the
	// last one.
	q.suspect = 0
	q.chunk = max(min(1, len(q.letters)), len(q.letters)>>(q.found-1))
	if err := s.treat(l, refusal); err != nil || l.out.Topic != s.topics.Output {
		return err
	}
	return s.foresee(q, l.out.Partition, s.likeness(l, refusal), refusal)
}

// foresee treats the records of a queue that their partition will refuse as it has refused another
// one.
func (s *isolator) foresee(
	q *queue, partition int32, alike func(*kgo.Record) bool, refusal error,
) error {
	if alike == nil {
		return nil
	}
	left := make([]letter, 0, len(q.letters))
	for _, l := range q.letters {
		if l.out.Partition != partition || !alike(l.out) {
			left = append(left, l)
		} else if err := s.treat(l, refusal); err != nil {
			return err
		}
	}
	if len(left) < len(q.letters) {
		q.letters, q.chunk = left, len(left)
	}
	return nil
}

// treat does with a refused record what is to be done.
func (s *isolator) treat(l letter, refusal error) error {
	switch l.out.Topic {
	case s.topics.DeadLetter:
		return s.reform(l, refusal)
	case s.topics.Duplicates:
		form, ok := l.form.after(refusal, l.out)
		if !ok || form.stub { // it is only a report
			delete(s.open, l.polled)
		} else {
			out := *l.out
			form.apply(&out, l.polled)
			s.put(letter{out: fresh(out, l.polled), polled: l.polled, form: form})
		}
		return nil
	}
	reason := ReasonOf(refusal, l.polled)
	dead, err := s.rules.Refused(Refusal{l.polled, reason, refusal})
	if err == nil && !dead {
		delete(s.open, l.polled)
	}
	if err != nil || !dead {
		return err
	}
	return s.bury(l.polled, reason, form{now: !Keeps(l.polled.Timestamp)})
}

func (s *isolator) bury(polled *kgo.Record, reason string, f form) error {
	out, f, err := s.topics.deadLetter(polled, reason, Note{}, f)
	if err == nil {
		s.buried[polled] = reason
		s.put(letter{&out, polled, reason, f})
	}
	return err
}

// reform sends a dead letter in another form.
func (s *isolator) reform(l letter, refusal error) error {
	next, ok := l.form.after(refusal, l.out)
	if !ok {
		return &Stuck{l.polled, l.reason, refusal}
	}
	return s.bury(l.polled, l.reason, next)
}

// fresh is a record as it was before a client had it.
func fresh(out kgo.Record, polled *kgo.Record) *kgo.Record {
	r := copied(out.Topic, &out, out.Headers)
	r.Partition = polled.Partition
	return &r
}

// giveUp is for errors that are not about the record. A dead-letter topic that is gone or denied
// holds up only the records that must go there.
func (s *isolator) giveUp(l letter, err error) error {
	if l.out.Topic == s.topics.DeadLetter && isAbsence(err) {
		return &Stuck{l.polled, l.reason, fmt.Errorf("to %s: %w", l.out.Topic, err)}
	}
	return fmt.Errorf("to %s[%d]: %w", l.out.Topic, l.out.Partition, err)
}

func isAbsence(err error) bool {
	return errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.UnknownTopicID) ||
		errors.Is(err, kerr.TopicAuthorizationFailed)
}
