package forwarder

import (
	"context"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/crashpoint"
)

// Producer is the session that a parcel is sent with: a *kgo.Client, or one inside a transaction.
type Producer interface {
	// Produce sends a record and calls promise when it is acknowledged by all in-sync replicas,
	// or has failed for good.
	Produce(ctx context.Context, r *kgo.Record, promise func(*kgo.Record, error))
	// Flush returns when every promise was called.
	Flush(ctx context.Context) error
}

// Send sends the parcel and returns when every record of it is acknowledged; then the parcel is empty, which
// frees its memory while the transaction commits. After an error some records may have been written and others
// not: the caller aborts.
func (p *Parcel) Send(ctx context.Context, to Producer) error {
	var first firstFailure
	promise := first.promise // once: in the loop it would be allocated for every record
	for i := range p.records {
		to.Produce(ctx, &p.records[i], promise)
		crashpoint.At("record-produced")
	}
	crashpoint.At("parcel-produced")
	if err := to.Flush(ctx); err != nil {
		return fmt.Errorf("forward %d records: flush: %w", len(p.records), err)
	}
	if err := first.get(); err != nil {
		return fmt.Errorf("forward %d records: %w", len(p.records), err)
	}
	p.records = nil
	return nil
}

// firstFailure keeps the first error of many promises.
type firstFailure struct {
	mu  sync.Mutex
	err error
}

func (f *firstFailure) promise(r *kgo.Record, err error) {
	if err == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = fmt.Errorf("to %s[%d]: %w", r.Topic, r.Partition, err)
	}
}

func (f *firstFailure) get() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}
