package client

import (
	"context"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

// unassigned counts the records that were handed to a client and have no partition yet. A client
// that meets a topic holds its records back until it has seen the topic's metadata. Then it gives
// them their partitions one after the other, and while it flushes it sends what has one: if the
// broker refused the first records, the rest would get their partitions behind that, and would be
// written ahead of what was refused. So a flush begins when the count is zero.
type unassigned struct {
	client  *kgo.Client
	n       atomic.Int64
	waiting atomic.Bool
	zero    chan struct{} // of capacity 1
}

// newProducer makes a client, and what its flushes go through.
func newProducer(opts ...kgo.Opt) (client *kgo.Client, u *unassigned, err error) {
	u = &unassigned{zero: make(chan struct{}, 1)}
	u.client, err = kgo.NewClient(append(opts, kgo.WithHooks(u))...)
	return u.client, u, err
}

// OnProduceRecordBuffered implements kgo.HookProduceRecordBuffered.
func (u *unassigned) OnProduceRecordBuffered(*kgo.Record) { u.n.Add(1) }

// OnProduceRecordPartitioned implements kgo.HookProduceRecordPartitioned.
func (u *unassigned) OnProduceRecordPartitioned(*kgo.Record, int32) { u.less() }

// OnProduceRecordUnbuffered implements kgo.HookProduceRecordUnbuffered. A record that has a
// partition counts a second time if it fails. Before a flush it fails only by what the whole batch
// is given back for, and behind that there is nothing left to count.
func (u *unassigned) OnProduceRecordUnbuffered(_ *kgo.Record, err error) {
	if err != nil {
		u.less()
	}
}

func (u *unassigned) less() {
	for n := u.n.Load(); n > 0; n = u.n.Load() {
		if !u.n.CompareAndSwap(n, n-1) {
			continue
		}
		if n == 1 && u.waiting.Load() {
			select {
			case u.zero <- struct{}{}:
			default:
			}
		}
		return
	}
}

// flush flushes the client when every record has a partition or has failed.
func (u *unassigned) flush(ctx context.Context) error {
	u.waiting.Store(true)
	defer u.waiting.Store(false)
	for u.n.Load() > 0 {
		select {
		case <-u.zero:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return u.client.Flush(ctx)
}
