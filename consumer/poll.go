package consumer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/crashpoint"
)

// poll waits for records and knows their fences. It returns nil when ctx ends.
func (m *member) poll(ctx context.Context) (*Batch, error) {
	for {
		m.reset() // no batch is in hand
		m.readSkips(ctx)
		fetches, err := m.wait(ctx)
		withheld := m.withhold(fetches)
		if ctx.Err() != nil && fetches.NumRecords() == 0 {
			return nil, nil
		}
		if err != nil && !errors.Is(err, errUnread) && !errors.Is(err, errDue) &&
			!errors.Is(err, errTaken) {
			return nil, err
		}
		narrow, err := m.readFences(ctx, fetches)
		if err != nil {
			return nil, err
		}
		m.disown(fetches)
		if fetches.NumRecords() == 0 {
			m.expect(withheld)
			m.expect(narrow)
			m.client.AllowRebalance() // which may wait for records that are withheld
			continue
		}
		batch, err := m.batch(ctx, fetches)
		m.expect(withheld)
		m.expect(narrow)
		return batch, err
	}
}

// disown takes the records of partitions out of the fetches that the member does not have, or no
// more. Of some of them nobody has looked whether they have a counterpart in the fence topic.
func (m *member) disown(fetches kgo.Fetches) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range fetches {
		for j := range fetches[i].Topics {
			partitions := fetches[i].Topics[j].Partitions
			for k := range partitions {
				if f := &partitions[k]; m.partitions[f.Partition] == nil {
					f.Records = nil
				}
			}
		}
	}
}

func (m *member) batch(ctx context.Context, fetches kgo.Fetches) (*Batch, error) {
	if err := m.checkCut(ctx, fetches); err != nil {
		return nil, err
	}
	m.mu.Lock()
	batch := NewBatch(fetches, m.fenceLocked, m.opts.ConsumerGroup, m.revoked)
	m.noteEpochsLocked(batch)
	m.noteMissingLocked(batch)
	m.noteSkipsLocked(batch)
	m.mu.Unlock()
	batch.amount = amount{len(batch.Records), m.filled}
	if err := m.checkRedelivery(batch); err != nil {
		return nil, err
	}
	if err := m.checkReturned(batch); err != nil {
		return nil, err
	}
	m.reportRewinds(batch)
	return batch, nil
}

// errTaken ends the poll of a session that waits for records, when the group takes partitions away
// or waits to do so: what comes in the next poll was fetched after that, and is no batch that
// anybody has to give back.
var errTaken = errors.New("a rebalance came while no batch was in hand")

// errUnread ends the poll of a session that waits for records, while a partition without any has a
// fence to be read: its offset may be past records that nobody has handled.
var errUnread = errors.New("fences are to be read")

// errDue ends the poll of a session that waits for records, when one that was held is due.
var errDue = errors.New("a partition was held for long enough")

// wait polls until there are records, and for more of them if more are there. It ends early when
// ctx ends or noteLag ends it.
func (m *member) wait(ctx context.Context) (kgo.Fetches, error) {
	polling, end := context.WithCancelCause(ctx)
	defer end(nil)
	if next := m.resumeHeld(); !next.IsZero() {
		due := time.AfterFunc(time.Until(next), func() { end(errDue) })
		defer due.Stop()
	}
	m.setIdle(end)
	asked := time.Now()
	fetches := m.client.Poll(polling, m.opts.Limit.limits().records)
	waiting := time.Since(asked) < waitingBelow
	m.filled = size(fetches)
	m.setIdle(nil)
	if polling.Err() == nil {
		fetches = m.fill(ctx, fetches, waiting)
	}
	if err := m.fetchErrors(polling, fetches); err != nil {
		return fetches, err
	}
	if ctx.Err() != nil {
		return fetches, nil
	}
	return fetches, context.Cause(polling)
}

func (m *member) setIdle(end context.CancelCauseFunc) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.idle = end
}

// fetchErrors joins what the client could not fix by itself.
func (m *member) fetchErrors(ctx context.Context, fetches kgo.Fetches) error {
	var errs []error
	fetches.EachError(func(topic string, partition int32, err error) {
		var (
			loss     *kgo.ErrDataLoss
			tooLarge *kgo.ErrDecompressTooLarge
		)
		switch {
		case errors.As(err, &tooLarge):
			m.holdUnread(partition, tooLarge.Offset)
		case errors.As(err, &loss):
			m.opts.Metrics.dataLoss.Inc()
			m.opts.Logger.Error(
				"the input's log was cut: records that were consumed are gone from the broker",
				"partition", partition, "consumed_to", loss.ConsumedTo, "reset_to", loss.ResetTo)
			if m.soughtBehind(partition, loss.ResetTo) {
				errs = append(errs, fmt.Errorf("poll: the log of partition %d was cut at %d, and "+
					"records behind that were given back: %w", partition, loss.ResetTo,
					ErrNotDelivered))
			}
		case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		default:
			errs = append(errs, fmt.Errorf("poll %s[%d]: %w", topic, partition, inputError(err)))
		}
	})
	return errors.Join(errs...)
}

// readFences reads those of partitions that were assigned, once the client knows where they begin,
// and sees to it that they begin where they must. It returns where partitions go on whose records
// it takes out of the fetches.
func (m *member) readFences(ctx context.Context, fetches kgo.Fetches) (back Offsets, err error) {
	m.mu.Lock()
	some := m.hasUnreadLocked()
	m.mu.Unlock()
	if !some {
		return nil, nil
	}
	begun := make(map[int32]bool)
	committed := m.client.Committed()
	for p := range committed {
		begun[p] = true
	}
	fetches.EachPartition(func(f kgo.FetchTopicPartition) {
		begun[f.Partition] = begun[f.Partition] || len(f.Records) > 0
	})
	due := m.dueFences(begun)
	if len(due) == 0 {
		return nil, nil
	}
	if back, err = m.holdNarrow(ctx, due, committed, fetches); err != nil || len(due) == 0 {
		return back, err
	}
	crashpoint.At("fences-unread")
	found, err := m.client.Fences(ctx, slices.Sorted(maps.Keys(due)))
	if err != nil {
		return back, err
	}
	crashpoint.At("fences-read")
	fences, err := m.checkStart(ctx, due, found)
	if err != nil {
		return back, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for number, f := range fences {
		if !m.isDueLocked(number, due[number]) {
			continue // revoked meanwhile
		}
		p := m.partitions[number]
		p.unread, p.fence = 0, f
		if at, known := committed[number]; known { // a Seek will change what the client says
			p.done = at.Offset
		}
		p.heed(found, number)
		p.doubt(m.opts.Limit.Records())
	}
	return back, nil
}

func (m *member) hasUnreadLocked() bool {
	for _, p := range m.partitions {
		if !p.known() {
			return true
		}
	}
	return false
}

// reportRewinds says once per assignment that a partition begins below its fence.
func (m *member) reportRewinds(b *Batch) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range b.Spans {
		s := &b.Spans[i]
		p := m.partitions[s.Partition]
		if !s.Again || p == nil || p.warned {
			continue
		}
		p.warned = true
		m.opts.Metrics.rewinds.Inc()
		m.opts.Logger.Warn("offsets were set back: records below the fence were handled before",
			"partition", s.Partition, "from", s.First, "fence", s.before.Next())
	}
}
