package consumer

import (
	"context"
	"time"
)

// Seams for tests of the package that have a client, which imports it.

var ErrGoneOn = errGoneOn

func (t *Transactional) SetPatience(d time.Duration) { t.patience = d }

// AwaitOpening returns when the transaction of the batch in hand is open, or was aborted again.
func (t *Transactional) AwaitOpening() { <-t.opening.done }

// OthersCommitted has the session believe that somebody else made the last commit of a partition.
func (t *Transactional) OthersCommitted(partition int32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.partitions[partition].done--
}

func (t *Transactional) Revoke(partitions ...int32) { t.drop("partitions revoked", partitions) }

func (m *member) Measure(ctx context.Context) { m.lag.update(ctx) }

func (m *member) Name() string { return m.opts.ConsumerGroup }

// AwaitOffsets returns when the offsets of the last batch were answered.
func (a *AtLeastOnce) AwaitOffsets() { <-a.offsets.Load().done }

// Release is what a revocation does before another member may have the partitions.
func (a *AtLeastOnce) Release(partitions ...int32) {
	groupEvents{a.member}.Revoked(partitions)
}

// GroupOffsets are what the next owner of the partitions would be told.
func (t *Transactional) GroupOffsets(ctx context.Context) (Offsets, error) {
	return t.client.GroupOffsets(ctx)
}
