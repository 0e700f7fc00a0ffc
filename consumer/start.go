package consumer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/fence"
	"github.com/kdedup/kdedup/internal/pause"
)

// A batch moves a partition's offset and its fence in one step. So where an assigned partition
// begins is checked once, when its fence was read: the group's offset tells what the group
// believes, and the fence what was handled.
//
//	offset below the fence   a redelivery, or offsets that were set back: the fence knows the records
//	offset at the fence      as it should be
//	offset above the fence   records were skipped: an operator set the offset forward, or a broker lost the markers of a
//	                         transaction, so that its offsets were committed without its records. Records in between may
//	                         own claims, and their copies would be dropped for records that nobody forwards
//	no offset                it has expired (offsets.retention.minutes), or the group is new and goes on for another one
//
// In the last two cases the partition begins at its fence. Where nothing was handled yet, the start
// that was decided for the partition stands for it (start: latest). That goes into the group's
// offsets, and the session ends: its client has begun to fetch elsewhere, and passes over a Seek
// while it does not know yet whether the log was cut.

// errPlaced ends a session whose partitions begin elsewhere.
var errPlaced = errors.New("offsets were set to the fences")

// ErrRival says that another consumer group reads the input for the same scope: each record would
// find its own claim for both of them, and both would forward it.
var ErrRival = errors.New("two consumer groups forward one input with one scope")

// ErrStrangeOffsets says that the group begins where kdedup has not left off: another program
// committed there, or an operator did. What lies below was handled by nobody who wrote a fence.
var ErrStrangeOffsets = errors.New("the offsets are not kdedup's")

// checkStart returns the fences that count, of the partitions that are still due.
func (m *member) checkStart(
	ctx context.Context, due map[int32]int, found fence.Found,
) (map[int32]fence.Fence, error) {
	committed, err := m.committedOf(ctx, due, found)
	if err != nil {
		return nil, err
	}
	fences, back := make(map[int32]fence.Fence), make(Offsets)
	var unfenced []int32
	for _, p := range m.stillDue(due) {
		f, decided := found.Begin(p)
		at, known := committed[p]
		known = known && at.Offset >= 0
		if known && at.Offset > 0 && (!decided || f.Foreign(found.Input)) {
			unfenced = append(unfenced, p)
		}
		if f.Foreign(found.Input) {
			if known && at.Offset == f.Next() {
				// Offsets of the deleted topic that landed on the new one: its first records would
				// be skipped.
				return nil, fmt.Errorf("the committed offset %d of %s[%d] is not of this topic: %w",
					at.Offset, m.opts.Input, p, ErrInputReplaced)
			}
			fences[p] = fence.Fence{} // it means nothing any more
			continue
		}
		fences[p] = found.Fences[p] // a start covers nothing
		if decided && m.goesBack(p, f, at.Offset, known, found.Input) {
			back[p] = kgo.EpochOffset{Epoch: fences[p].EpochBelow(found.Input),
				Offset: f.Next()}
		}
	}
	if len(unfenced) > 0 && !m.opts.AcceptSkips {
		if err := m.client.CheckOffsets(ctx, unfenced); err != nil {
			return nil, fmt.Errorf("poll: %w", err)
		}
	}
	if err := m.checkRivals(ctx, fences); err != nil {
		return nil, err
	}
	if m.opts.CheckScope != nil {
		if err := m.opts.CheckScope(ctx); err != nil {
			return nil, fmt.Errorf("poll: %w", err)
		}
	}
	if err := m.checkStore(ctx, fences); err != nil {
		return nil, err
	}
	if err := m.checkCutStart(ctx, committed, fences, found.Input, back); err != nil {
		return nil, err
	}
	if len(back) > 0 {
		return nil, m.beginAt(ctx, due, back)
	}
	return fences, nil
}

// goesBack reports whether a partition begins at its fence, or its start, and not where the group
// has its offset, if that is known.
func (m *member) goesBack(
	partition int32, f fence.Fence, at int64, known bool, input [16]byte,
) bool {
	switch {
	case !known && f.Next() > 0 && f.Of(input):
		m.opts.Logger.Warn("the group has no offset of a partition that was handled up to "+
			"its fence: beginning there",
			"partition", partition, "fence", f.Next())
		return true
	case !known || at <= f.Next():
		return false
	case m.opts.AcceptSkips:
		m.opts.Metrics.Skipped(partition, f.Next(), at)
		m.opts.Logger.Warn("offsets were moved forward: what lies between is skipped, as "+
			"on_skip: accept says", "partition", partition, "from", f.Next(), "to", at)
		return false
	}
	m.opts.Logger.Error("offsets were moved forward over records that were not handled: "+
		"reading them now; "+
		"to skip them, set on_skip: accept", "partition", partition, "committed", at,
		"fence", f.Next())
	return true
}

// committedOf returns the group's offsets as they were when the partitions were assigned. The
// client does not tell an offset of zero from none, so the coordinator is asked where that matters.
// What it says now counts for that only: it is later than the fences, and the next owner of a
// partition may have moved both.
func (m *member) committedOf(
	ctx context.Context, due map[int32]int, found fence.Found,
) (Offsets, error) {
	committed := m.client.Committed()
	ambiguous := func(p int32) bool {
		f, _ := found.Begin(p)
		return committed[p].Offset <= 0 && f.Next() > 0 && f.Of(found.Input)
	}
	if !slices.ContainsFunc(m.stillDue(due), ambiguous) {
		return committed, nil
	}
	now, err := m.stableOffsets(ctx)
	if err != nil {
		return nil, err
	}
	told := make(Offsets)
	for _, p := range m.stillDue(due) {
		at, known := committed[p]
		if ambiguous(p) {
			there, some := now[p]
			if known = some && there.Offset >= 0; known && there.Offset > at.Offset {
				return nil,
					fmt.Errorf("poll: the group's offset of partition %d is %d since it was "+
						"assigned: %w", p, there.Offset, errPlaced)
			}
		}
		if known {
			told[p] = at
		}
	}
	return told, nil
}

const (
	retryUnstable = 20 * time.Millisecond
	// answerTimeout is how long the group's coordinator may take.
	answerTimeout = 15 * time.Second
)

// stableOffsets waits for the markers of transactions that are still ending, that of the last batch
// for example.
func (m *member) stableOffsets(ctx context.Context) (offsets Offsets, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	unstable := func(err error) bool { return errors.Is(err, kerr.UnstableOffsetCommit) }
	err = pause.Repeat(ctx, retryUnstable, unstable, func() error {
		offsets, err = m.client.GroupOffsets(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("fetch offsets: %w", err)
	}
	return offsets, nil
}

// beginAt has the next session begin at other offsets. It always returns an error. Partitions that
// were revoked meanwhile are their next owner's.
func (m *member) beginAt(ctx context.Context, due map[int32]int, offsets Offsets) error {
	still := m.stillDue(due)
	maps.DeleteFunc(offsets, func(p int32, _ kgo.EpochOffset) bool {
		return !slices.Contains(still, p)
	})
	if len(offsets) == 0 {
		return fmt.Errorf("poll: %w: %w", errPlaced, ErrRevoked)
	}
	m.awaitOffsets() // a client gives up a commit when the next one comes
	refused := make(chan error, 1)
	m.client.Commit(ctx, offsets, func(err error) { refused <- err })
	return errors.Join(fmt.Errorf("poll: partitions %v: %w", slices.Sorted(maps.Keys(offsets)),
		errPlaced), <-refused)
}

// checkStore looks for fences that build on claims of another store. All copies of what they cover
// would pass.
func (m *member) checkStore(ctx context.Context, fences map[int32]fence.Fence) error {
	if m.opts.CheckStore == nil {
		return nil
	}
	for _, p := range slices.Sorted(maps.Keys(fences)) {
		if f := fences[p]; f.Store != "" && f.Store != m.opts.Store {
			if err := m.opts.CheckStore(ctx, p, f); err != nil {
				return fmt.Errorf("fence of %s[%d]: %w", m.opts.Input, p, err)
			}
		}
	}
	return nil
}

// checkRivals looks for members of other groups that wrote fences. A group that was renamed goes on
// at the fences of its old name, if that one has ended.
func (m *member) checkRivals(ctx context.Context, fences map[int32]fence.Fence) error {
	others := make(map[string]int32)
	for p, f := range fences {
		if f.Group != "" && f.Group != m.opts.ConsumerGroup {
			others[f.Group] = p
		}
	}
	for _, group := range slices.Sorted(maps.Keys(others)) {
		active, err := m.client.HasMembers(ctx, group)
		if err != nil {
			return fmt.Errorf(
				"look whether consumer group %s, which wrote the fence of %s[%d], has ended: %w",
				group, m.opts.Input, others[group], err)
		}
		if active {
			return fmt.Errorf(
				"%w: %s has members, and handled %s[%d] last; stop it to go on in its place, "+
					"or give this entry a scope and a fence_topic of its own", ErrRival, group,
				m.opts.Input, others[group])
		}
		m.opts.Logger.Info("going on for another consumer group", "group", group)
	}
	return nil
}
