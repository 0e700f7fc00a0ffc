package redrive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/forwarder"
	"github.com/kdedup/kdedup/internal/crashpoint"
)

// session is the producer of all redrives of the pipeline, as long as no other one begins.
type session struct {
	*Options
	client *kgo.Client
	marks  *marks
}

// ErrReplaced says that another redrive of the pipeline has begun.
var ErrReplaced = errors.New(
	"another redrive of this pipeline has begun, and goes on where this one was")

const joinTimeout = time.Minute

// begin ends what an earlier redrive left open, and reads what all of them have done.
func begin(ctx context.Context, o *Options) (*session, error) {
	client, err := kgo.NewClient(append(append(append(o.Connection(), o.Target.Producer()...),
		crashpoint.Hooks()...),
		kgo.TransactionalID(o.TransactionalID), kgo.TransactionTimeout(o.TransactionTimeout),
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.MaxBufferedRecords(3*o.BatchRecords+mostErased),
	)...)
	if err != nil {
		return nil, err
	}
	s := &session{Options: o, client: client}
	joining, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	if _, _, err = client.ProducerID(joining); err != nil {
		client.Close()
		return nil, fmt.Errorf("begin as %s: %w", o.TransactionalID, err)
	}
	if s.marks, err = readMarks(ctx, o, true); err != nil {
		client.Close()
		return nil, err
	}
	return s, nil
}

// send sends letters with their marks, all or none. It returns those that the topic refused, with
// the reasons, which have no mark. forwarder.ErrUnfinished comes with some of these: nothing was
// sent, and there are more.
func (s *session) send(
	ctx context.Context, letters []*letter, at time.Time,
) (refused map[*letter]string, err error) {
	began := time.Now()
	if err := s.client.BeginTransaction(); err != nil {
		return nil, s.explain(err, began)
	}
	crashpoint.At("redrive-begun")
	refused = make(map[*letter]string)
	if err := s.fill(ctx, letters, refused, at, began); err != nil {
		return refused, errors.Join(s.explain(err, began), s.abort(ctx))
	}
	crashpoint.At("letters-forwarded")
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.TransactionTimeout)
	defer cancel()
	if err := s.client.EndTransaction(ending, kgo.TryCommit); err != nil {
		return nil, fmt.Errorf("it is not known whether the last transaction was committed; "+
			"the same command finds out, and goes on: %w", s.explain(err, began))
	}
	crashpoint.At("redrive-ended")
	return refused, nil
}

// fill produces all of the transaction, and releases what stands in its way.
func (s *session) fill(
	ctx context.Context, letters []*letter, refused map[*letter]string, at, began time.Time,
) error {
	outgoing := s.Target.NewOutgoing(len(letters))
	byRecord := make(map[*kgo.Record]*letter, len(letters))
	for _, l := range letters {
		byRecord[l.out] = l
		outgoing.Clean(l.out) // prepare has seen that it fits
	}
	if err := outgoing.Send(ctx, s.client, forwarder.Isolation{
		Refused: func(r forwarder.Refusal) (bool, error) {
			refused[byRecord[r.Record]] = r.Reason
			return false, nil
		},
		Until: began.Add(s.TransactionTimeout / 2),
	}); err != nil {
		return err
	}
	var records []*kgo.Record
	for _, l := range letters {
		if _, is := refused[l]; !is {
			records = append(records, s.marks.records(l, s.Target.Output, at)...)
		}
	}
	if err := s.produce(ctx, append(records, s.marks.erasures()...)); err != nil {
		return err
	}
	return s.release(ctx, letters, refused, began)
}

func (s *session) produce(ctx context.Context, records []*kgo.Record) error {
	errs := make([]error, len(records))
	for i, r := range records {
		s.client.Produce(ctx, r, func(_ *kgo.Record, err error) { errs[i] = err })
	}
	if err := s.client.Flush(ctx); err != nil {
		return fmt.Errorf("to %s: flush: %w", s.Marks, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("to %s: %w", s.Marks, err)
	}
	return nil
}

// release frees the IDs that stand in the way of what is sent into the input. It comes when the
// brokers have taken all of it from this very producer, and while its transaction cannot have timed
// out: so none that was replaced frees what its successor's record has claimed.
func (s *session) release(
	ctx context.Context, letters []*letter, refused map[*letter]string, began time.Time,
) error {
	ctx, cancel := context.WithDeadline(ctx, began.Add(s.TransactionTimeout/2))
	defer cancel()
	for _, l := range letters {
		if _, is := refused[l]; is || !l.release {
			continue
		}
		if ctx.Err() != nil {
			return fmt.Errorf("release IDs: the store takes too long for a transaction of %v",
				s.TransactionTimeout)
		}
		if err := s.Store.Release(ctx, s.Scope, l.id); err != nil {
			return fmt.Errorf("release the ID of %s: %w", l, err)
		}
	}
	return nil
}

func (s *session) abort(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.TransactionTimeout)
	defer cancel()
	if err := s.client.AbortBufferedRecords(ctx); err != nil {
		return fmt.Errorf("abort: %w", err)
	}
	// What fails here the brokers do themselves, later.
	if err := s.client.EndTransaction(ctx, kgo.TryAbort); err != nil {
		s.Logger.Debug("the transaction was not aborted", "error", err)
	}
	return nil
}

// explain tells a redrive that was replaced by another one.
func (s *session) explain(err error, began time.Time) error {
	if took := time.Since(began); took > s.TransactionTimeout {
		return fmt.Errorf("a transaction took %v, longer than transaction_timeout: raise it, or "+
			"lower batch_records: %w", took.Round(time.Second), err)
	}
	for _, replaced := range []error{kerr.InvalidProducerEpoch, kerr.ProducerFenced,
		kerr.InvalidProducerIDMapping} {
		if errors.Is(err, replaced) {
			return fmt.Errorf("%w: %w", ErrReplaced, err)
		}
	}
	return err
}

func (s *session) close() { s.client.Close() }
