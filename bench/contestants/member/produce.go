package member

import (
	"context"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Producer is a client, or a session that has one.
type Producer interface {
	Produce(ctx context.Context, r *kgo.Record, promise func(*kgo.Record, error))
}

// Batch is what was produced since the last flush. It is safe for concurrent use.
type Batch struct {
	options *Options
	to      Producer
	mu      sync.Mutex
	first   error
}

// NewBatch begins one.
func (o *Options) NewBatch(to Producer) *Batch { return &Batch{options: o, to: to} }

// Add produces a copy of the record.
func (b *Batch) Add(ctx context.Context, r *kgo.Record) {
	b.to.Produce(ctx, b.options.Copy(r), b.promise)
}

func (b *Batch) promise(_ *kgo.Record, err error) {
	if err == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.first == nil {
		b.first = fmt.Errorf("produce: %w", err)
	}
}

// Flush returns when all is acknowledged, or the first failure.
func (b *Batch) Flush(ctx context.Context, client *kgo.Client) error {
	if err := client.Flush(ctx); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.first
}
