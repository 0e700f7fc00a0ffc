package consumer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/crashpoint"
)

// member is what both kinds of session share: the client, its partitions and their fences.
type member struct {
	opts   Options
	client *kgo.Client
	lag    *lagWatch

	mu        sync.Mutex
	fences    map[int32]Fence // of the assigned partitions; partitions in unknown are not in it
	unknown   map[int32]bool  // assigned, but their fence was not read yet
	warned    map[int32]bool  // partitions whose rewind was reported
	committed map[int32]int64 // by this session, of the assigned partitions
	lags      map[int32]int64 // of the assigned partitions, as far as measured
	returned  map[int32]int64 // first offsets of what was given back and not delivered again yet
	still     map[int32]stillness
	idle      context.CancelCauseFunc // ends the poll that waits for records; nil while there is none
	taken     bool                    // partitions were revoked or lost since the last reset
	revoked   context.Context         // of the batch in hand
	interrupt context.CancelCauseFunc
}

func newMember(opts Options) *member {
	m := &member{
		opts:      opts,
		fences:    make(map[int32]Fence),
		unknown:   make(map[int32]bool),
		warned:    make(map[int32]bool),
		committed: make(map[int32]int64),
		lags:      make(map[int32]int64),
		returned:  make(map[int32]int64),
		still:     make(map[int32]stillness),
	}
	m.reset()
	return m
}

// reset begins a new batch: whatever was revoked before does not concern it.
func (m *member) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.taken = false
	m.revoked, m.interrupt = context.WithCancelCause(context.Background())
}

// wasTaken reports whether partitions were taken away since the batch began.
func (m *member) wasTaken() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.taken
}

func (m *member) assign(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opts.Metrics.rebalances.Inc()
	for _, p := range partitions[m.opts.Input] {
		m.unknown[p] = true
	}
	m.opts.Logger.Info("partitions assigned", "partitions", partitions[m.opts.Input])
}

func (m *member) revoke(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
	m.drop("partitions revoked", partitions[m.opts.Input])
}

func (m *member) lose(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
	m.drop("partitions lost", partitions[m.opts.Input])
}

func (m *member) drop(what string, partitions []int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(partitions) == 0 {
		return
	}
	m.taken = true
	m.interrupt(ErrRevoked)
	for _, p := range partitions {
		delete(m.fences, p)
		delete(m.unknown, p)
		delete(m.warned, p)
		delete(m.committed, p)
		delete(m.lags, p)
		delete(m.returned, p)
		delete(m.still, p)
		m.opts.Metrics.forgetLag(p)
	}
	m.opts.Logger.Info(what, "partitions", partitions)
}

// hurry ends the claims of the batch in hand because a rebalance waits for it.
func (m *member) hurry() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.interrupt(ErrRevoked)
}

// Joined reports whether the group has accepted this member.
func (m *member) Joined() bool {
	_, generation := m.client.GroupMetadata()
	return generation >= 0
}

// poll waits for records and knows their fences. It returns nil when ctx ends.
func (m *member) poll(ctx context.Context, poll func(context.Context, int) kgo.Fetches) (*Batch, error) {
	fetches, err := m.wait(ctx, poll)
	if ctx.Err() != nil && fetches.NumRecords() == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	read, err := m.readUnknownFences(ctx)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	batch := NewBatch(fetches, m.fences, m.revoked)
	m.mu.Unlock()
	if err := m.returnToFences(batch, read); err != nil {
		return nil, err
	}
	if err := m.checkRedelivery(batch); err != nil {
		return nil, err
	}
	m.reportRewinds(batch)
	return batch, nil
}

// wait polls until there are records, and for more of them if more are there. It ends early when ctx ends or
// noteLag ends it.
func (m *member) wait(ctx context.Context, poll func(context.Context, int) kgo.Fetches) (kgo.Fetches, error) {
	polling, end := context.WithCancelCause(ctx)
	defer end(nil)
	m.setIdle(end)
	asked := time.Now()
	fetches := poll(polling, m.opts.BatchRecords)
	waiting := time.Since(asked) < waitingBelow
	m.setIdle(nil)
	if polling.Err() == nil {
		fetches = m.fill(ctx, fetches, waiting, poll)
	}
	if err := context.Cause(polling); err != nil && ctx.Err() == nil {
		return fetches, err
	}
	return fetches, m.fetchErrors(ctx, fetches)
}

func (m *member) setIdle(end context.CancelCauseFunc) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.idle = end
}

// fetchErrors joins what the client could not mend by itself.
func (m *member) fetchErrors(ctx context.Context, fetches kgo.Fetches) error {
	var errs []error
	fetches.EachError(func(topic string, partition int32, err error) {
		var loss *kgo.ErrDataLoss
		switch {
		case errors.As(err, &loss):
			m.opts.Metrics.dataLoss.Inc()
			m.opts.Logger.Error("the input's log was cut: records that were consumed are gone from the broker",
				"partition", partition, "consumed_to", loss.ConsumedTo, "reset_to", loss.ResetTo)
		case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		default:
			errs = append(errs, fmt.Errorf("poll %s[%d]: %w", topic, partition, inputError(err)))
		}
	})
	return errors.Join(errs...)
}

// readUnknownFences returns the partitions whose fences it has read.
func (m *member) readUnknownFences(ctx context.Context) ([]int32, error) {
	m.mu.Lock()
	partitions := slices.Sorted(maps.Keys(m.unknown))
	m.mu.Unlock()
	if len(partitions) == 0 {
		return nil, nil
	}
	crashpoint.At("fences-unread")
	found, err := m.readFences(ctx, partitions)
	if err != nil {
		return nil, err
	}
	crashpoint.At("fences-read")
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range partitions {
		if !m.unknown[p] {
			continue // revoked meanwhile
		}
		delete(m.unknown, p)
		m.fences[p] = found[p]
	}
	return partitions, nil
}

// reportRewinds says once per assignment that a partition begins below its fence.
func (m *member) reportRewinds(b *Batch) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range b.Spans {
		if !s.Again || m.warned[s.Partition] {
			continue
		}
		m.warned[s.Partition] = true
		m.opts.Metrics.rewinds.Inc()
		m.opts.Logger.Warn("offsets were set back: records below the fence were handled before",
			"partition", s.Partition, "from", s.First, "fence", s.before.Next())
	}
}

// fenceRecords are the fences to write for a batch. They build on those that the batch was polled
// with: a partition may have been lost since.
func (m *member) fenceRecords(b *Batch) []*kgo.Record {
	records := make([]*kgo.Record, len(b.Spans))
	for i, s := range b.Spans {
		records[i] = fenceRecord(m.opts.FenceTopic, m.opts.Input, s.Partition, s.Fence())
	}
	return records
}

// settle moves the fences of this session past a batch that is committed. When the input's log was
// cut, the client goes back within the session and delivers what was handled again.
func (m *member) settle(b *Batch) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opts.Metrics.consumed.Add(float64(len(b.Records)))
	for _, s := range b.Spans {
		if _, owned := m.fences[s.Partition]; owned {
			m.fences[s.Partition], m.committed[s.Partition] = s.Fence(), s.Next
		}
	}
}

func (m *member) ownsLocked(partition int32) bool {
	_, known := m.fences[partition]
	return known || m.unknown[partition]
}

func (m *member) owned() []int32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ownedLocked()
}

func (m *member) ownedLocked() []int32 {
	owned := slices.Collect(maps.Keys(m.fences))
	return slices.AppendSeq(owned, maps.Keys(m.unknown))
}
