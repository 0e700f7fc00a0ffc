package consumer

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/fence"
)

// An unclean leader election cuts the end of the input's log off, and the new leader goes on there
// in a later epoch. A client notices it by the epoch of the last record that it has read (KIP-320),
// and goes back. It does not notice it where it begins at an offset without an epoch, as tools
// commit them, nor where a Seek comes between its question to the leader and what it makes of the
// answer. Then it reads on in the middle of what is new. So a lane asks the leader itself before it
// believes the first records of a later epoch than those that it knows.

// later is a partition whose records begin in a later epoch than those before them.
type later struct {
	epoch    int32 // of those before: of its fence, or of an earlier batch
	position int64 // where the client went on
}

// checkCut has the fences of partitions end where their logs were cut. It returns an error if
// records behind that were passed over, and has the next session begin with them.
func (m *member) checkCut(ctx context.Context, fetches kgo.Fetches) error {
	found := m.laterEpochs(fetches)
	if len(found) == 0 {
		return nil
	}
	back := make(Offsets)
	ends, err := m.passedOver(ctx, found, back)
	if err != nil {
		return err
	}
	if len(back) > 0 {
		due := make(map[int32]int)
		for p := range back {
			due[p] = 0
		}
		return m.beginAt(ctx, due, back)
	}
	m.cut(ends)
	return nil
}

// checkCutStart is checkCut for partitions that begin at an offset without an epoch: their logs may
// end there now, and no record comes that would tell. It adds to where partitions begin.
func (m *member) checkCutStart(
	ctx context.Context, committed Offsets, fences map[int32]fence.Fence, input [16]byte,
	back Offsets,
) error {
	found := make(map[int32]later)
	for p, f := range fences {
		at, known := committed[p]
		if epoch := f.EpochBelow(input); known && at.Epoch < 0 && at.Offset > 0 && epoch >= 0 {
			found[p] = later{epoch: epoch, position: min(at.Offset, f.Next())}
		}
	}
	if len(found) == 0 {
		return nil
	}
	_, err := m.passedOver(ctx, found, back)
	return err
}

// passedOver returns where the logs of before ended, of which that is known. It adds those
// partitions to back that ended below where the client went on.
func (m *member) passedOver(
	ctx context.Context, found map[int32]later, back Offsets,
) (map[int32]int64, error) {
	epochs := make(map[int32]int32, len(found))
	for p, l := range found {
		epochs[p] = l.epoch
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	ends, err := m.client.EpochEnds(ctx, epochs)
	if err != nil {
		return nil, fmt.Errorf("poll: ask where the last leader's log has ended: %w", err)
	}
	for p, end := range ends {
		l := found[p]
		if end >= l.position {
			continue
		}
		m.opts.Metrics.dataLoss.Inc()
		m.opts.Logger.Error("the input's log was cut, and the client has passed over what came "+
			"in its place: reading it now",
			"partition", p, "consumed_to", l.position, "reset_to", end)
		back[p] = kgo.EpochOffset{Epoch: l.epoch, Offset: end}
	}
	return ends, nil
}

// laterEpochs are the partitions to ask about.
func (m *member) laterEpochs(fetches kgo.Fetches) map[int32]later {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := make(map[int32]later)
	for i := range fetches {
		for _, t := range fetches[i].Topics {
			for _, f := range t.Partitions {
				p := m.partitions[f.Partition]
				if len(f.Records) == 0 || !p.known() {
					continue
				}
				first, epoch := f.Records[0], max(p.epoch, p.fence.EpochBelow(t.TopicID))
				if epoch < 0 || first.LeaderEpoch <= epoch || !begins(fetches, first) {
					continue
				}
				position := p.done
				if p.returned != nowhere {
					position = p.returned
				}
				if m.opts.AcceptSkips { // an operator may have passed over the end of an epoch
					position = min(position, p.fence.Next())
				}
				// A client that has noticed is back where the old epoch ends.
				found[f.Partition] = later{epoch: epoch, position: min(position, first.Offset)}
			}
		}
	}
	return found
}

// begins reports whether a record is the first one of its partition.
func begins(fetches kgo.Fetches, record *kgo.Record) bool {
	for i := range fetches {
		for _, t := range fetches[i].Topics {
			for _, f := range t.Partitions {
				if f.Partition == record.Partition && len(f.Records) > 0 {
					return f.Records[0] == record
				}
			}
		}
	}
	return false
}

// cut has the fences end where the logs of before did.
func (m *member) cut(ends map[int32]int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for number, end := range ends {
		if p := m.partitions[number]; p.known() {
			p.fence = p.fence.Cut(end)
		}
	}
}

func (m *member) noteEpochsLocked(b *Batch) {
	for i := range b.Spans {
		if p := m.partitions[b.Spans[i].Partition]; p != nil {
			p.epoch = max(p.epoch, b.Spans[i].LeaderEpoch)
		}
	}
}
