package forwarder

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/crashpoint"
)

// Producer is the session that records are sent with: a *kgo.Client, or one inside a transaction.
type Producer interface {
	// Produce hands a record over and calls promise when it is acknowledged by all in-sync
	// replicas, or has failed for good. Nothing is sent before Flush. When a record of a partition
	// has failed, those behind it that were handed over before the Flush fail with it, unwritten,
	// unless it was too large for the client.
	Produce(ctx context.Context, r *kgo.Record, promise func(*kgo.Record, error))
	// Flush returns when every promise was called.
	Flush(ctx context.Context) error
}

// Refusal is a record that the clean topic does not take.
type Refusal struct {
	Record *kgo.Record // as it was polled
	Reason string      // one of Reasons
	Err    error       // what the broker says
}

// Isolation is what Send needs for records that a topic refuses.
type Isolation struct {
	// Refused is told each record that the clean topic refuses by itself. It says whether the
	// record becomes a dead letter; otherwise nothing is sent in its place. An error ends Send.
	Refused func(Refusal) (deadLetter bool, err error)
	// Until ends the search for such records; the zero value means that there is time. It is only
	// looked at between two tries: at least one record is found.
	Until time.Time
}

// ErrUnfinished ends a Send that has not found all records that the clean topic refuses when
// Isolation.Until comes.
var ErrUnfinished = errors.New("more records are refused than there is time to find")

// Send returns when every record is acknowledged, or was treated as Isolation says; then none is
// left, which frees their memory while the transaction commits. After an error some records may
// have been written and others not: the caller aborts.
func (o *Outgoing) Send(ctx context.Context, to Producer, isolation Isolation) error {
	n, began := len(o.records), time.Now()
	if o.topics.Input != nil {
		o.topics.Input.see(o.polled)
	}
	var failed failures
	promise := failed.promise // once: in the loop it would be allocated for every record
	for i := range o.records {
		to.Produce(ctx, &o.records[i], promise)
		crashpoint.At("record-produced")
	}
	crashpoint.At("batch-produced")
	if err := to.Flush(ctx); err != nil {
		return fmt.Errorf("forward %d records: flush: %w", n, err)
	}
	if errs := failed.take(); len(errs) > 0 {
		if err := o.isolate(ctx, to, began, errs, isolation); err != nil {
			return fmt.Errorf("forward %d records: %w", n, err)
		}
	}
	o.records, o.polled = nil, nil
	return nil
}

// failures keeps the errors of promises.
type failures struct {
	mu   sync.Mutex
	errs map[*kgo.Record]error
}

func (f *failures) promise(r *kgo.Record, err error) {
	if err == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.errs == nil {
		f.errs = make(map[*kgo.Record]error)
	}
	f.errs[r] = err
}

// take returns the errors since the last call.
func (f *failures) take() map[*kgo.Record]error {
	f.mu.Lock()
	defer f.mu.Unlock()
	errs := f.errs
	f.errs = nil
	return errs
}
