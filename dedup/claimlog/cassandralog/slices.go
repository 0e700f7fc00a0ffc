package cassandralog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/gocql/gocql"

	"github.com/kdedup/kdedup/dedup/claimlog"
	"github.com/kdedup/kdedup/internal/pause"
)

// sliceBlocks are the places of a slice. It is part of what is stored. Blocks of a thousand claims
// make a partition of 10 MiB, and the largest ones one of about 64.
const sliceBlocks = 256

func sliceOf(seq int64) int64 { return seq / sliceBlocks }

// firstOf is the first place of a slice.
func firstOf(slice int64) int64 { return slice * sliceBlocks }

// slack is how much longer than now a block must be kept so that a reader begins with it: it may
// take the reader this long to get there. What the margin is for needs less than half of it.
const slack = claimlog.Margin / 2

// partition names a slice of the shard.
func (s *shard) partition(slice int64) []any {
	return []any{s.log.group, s.log.uuid, s.number, slice}
}

func (s *shard) pointerKey() string { return fmt.Sprintf("end %s %d", s.log.founding.ID, s.number) }

// pointer is the slice in which the end of the shard is, and the mark of the process that opened
// it. No block is in a later one. There is none, -1, until the first block is written.
func (s *shard) pointer(ctx context.Context) (slice, opener int64, err error) {
	value, err := s.log.registry.value(ctx, s.pointerKey())
	if err != nil || value == nil {
		return -1, 0, err
	}
	return parsePointer(value)
}

func parsePointer(value []byte) (slice, opener int64, err error) {
	if len(value) != 16 {
		return 0, 0, fmt.Errorf("%q in the registry is no end of a shard", value)
	}
	slice = int64(binary.BigEndian.Uint64(value))
	return slice, int64(binary.BigEndian.Uint64(value[8:])), nil
}

func appendPointer(to []byte, slice, opener int64) []byte {
	to = binary.BigEndian.AppendUint64(to, uint64(slice))
	return binary.BigEndian.AppendUint64(to, uint64(opener))
}

// open moves the end to a slice, before its first block is written, and tells whether this process
// did it, or others are beyond the slice.
func (s *shard) open(ctx context.Context, slice int64) (mine, gone bool, err error) {
	at, opener, err := s.pointer(ctx)
	if err != nil {
		return false, false, err
	}
	if at < slice {
		old, value := appendPointer(nil, at, opener), appendPointer(nil, slice, s.mark)
		if at < 0 {
			err = s.log.registry.propose(ctx, s.pointerKey(), value)
		} else {
			err = s.log.registry.replace(ctx, s.pointerKey(), old, value)
		}
		if err == nil {
			at, opener, err = s.pointer(ctx)
		}
		if err != nil {
			return false, false, err
		}
	}
	return at == slice && opener == s.mark, at > slice, nil
}

// lookAgain is how often, and lookAgainAfter how long, whoever finds a slice without blocks waits
// for the one who opened it, before the slice is taken for one that has expired.
const (
	lookAgain      = 40
	lookAgainAfter = 25 * time.Millisecond
)

// end is behind the last block that anybody was shown. It tells whether it has seen that block.
func (s *shard) end(ctx context.Context) (end int64, seen bool, err error) {
	for looked := 0; ; looked++ {
		slice, _, err := s.pointer(ctx)
		if err != nil || slice < 0 {
			return 0, false, err
		}
		var newest int64
		err = s.log.session.Serial(ctx, s.log.statements.newest,
			s.partition(slice)...).Scan(&newest)
		if err == nil {
			return newest + 1, true, nil
		}
		if !errors.Is(err, gocql.ErrNotFound) {
			return 0, false, fmt.Errorf("look for the last block: %w", err)
		}
		if slice > 0 {
			if _, found, err := s.row(ctx, firstOf(slice)-1); err != nil || found {
				return firstOf(slice), found, err
			}
		}
		if looked < lookAgain {
			if !pause.For(ctx, lookAgainAfter) {
				return 0, false, context.Cause(ctx)
			}
			continue
		}
		if err := s.fill(ctx, slice); err != nil {
			return 0, false, err
		}
		looked = 0
	}
}

// fill writes empty blocks to all places of the slice with the end, if it has no block: none yet,
// or all have expired. Nobody can know then which of its places were used. It does nothing if there
// is a block.
func (s *shard) fill(ctx context.Context, slice int64) error {
	if err := s.checkNoneBefore(ctx, slice); err != nil {
		return err
	}
	now := s.log.now()
	r := row{time: now.UnixMilli(), ends: now.Add(claimlog.Margin).UnixMilli()}
	ttl, part := int(claimlog.Margin.Seconds()), s.partition(slice)
	_, err := s.log.session.ConditionalBatch(ctx, func(add func(string, ...any)) {
		for i := range int64(sliceBlocks) {
			r.seq, r.mark = firstOf(slice)+i, newMark()
			add(s.log.statements.insert, append(part[:4:4], r.seq, r.append(nil), ttl)...)
		}
		values := append([]any{ttl, r.mark}, part...)
		add(s.log.statements.setLast, append(values, nil)...)
	})
	if err != nil {
		return fmt.Errorf("fill slice %d, whose blocks have expired: %w", slice, err)
	}
	return nil
}

// checkNoneBefore refuses to take a slice for one that has expired while blocks of slices before it
// live: they would have expired first. It looks at some, further and further away. If the last
// block before the slice is there, nothing has expired, and the slice was opened by a process that
// died.
func (s *shard) checkNoneBefore(ctx context.Context, slice int64) error {
	if slice == 0 {
		return nil
	}
	if _, found, err := s.row(ctx, firstOf(slice)-1); err != nil || found {
		return err
	}
	for back := int64(1); back <= slice; back *= 2 {
		kept, err := s.kept(ctx, firstOf(slice-back))
		if err != nil {
			return err
		}
		if kept {
			return fmt.Errorf("%w: the blocks of slice %d are gone, and those of slice %d are "+
				"there, which are older; %s", claimlog.ErrCut, slice, slice-back, lostRemedy)
		}
	}
	return nil
}

const lostRemedy = "a table was truncated in part, or restored from a backup. To begin a new log, " +
	"stop all processes, truncate both tables, run kdedup setup -c FILE --accept-empty-store, and " +
	"claim what is on the clean topic with kdedup backfill"

// first is the first place of those up to the end that a reader begins with. The blocks before it
// have ended, whether or not they have expired.
func (s *shard) first(ctx context.Context, end int64) (first int64, err error) {
	n := sort.Search(int(end), func(seq int) bool {
		if err != nil {
			return true
		}
		var kept bool
		kept, err = s.kept(ctx, int64(seq))
		return kept
	})
	return int64(n), err
}

// kept tells whether a block must be kept for some time yet.
func (s *shard) kept(ctx context.Context, seq int64) (bool, error) {
	r, found, err := s.row(ctx, seq)
	return found && r.ends > s.log.now().Add(slack).UnixMilli(), err
}

// row reads one.
func (s *shard) row(ctx context.Context, seq int64) (r row, found bool, err error) {
	var data []byte
	err = s.log.session.Serial(ctx, s.log.statements.row,
		append(s.partition(sliceOf(seq)), seq)...).Scan(&data)
	if errors.Is(err, gocql.ErrNotFound) {
		return row{}, false, nil
	}
	if err == nil {
		err = r.parse(data)
	}
	if err != nil {
		return row{}, false, fmt.Errorf("read place %d: %w", seq, err)
	}
	r.seq = seq
	return r, true, nil
}

// last is the mark of the last block in a slice; 0 if there is none, or all have expired.
func (s *shard) lastMark(ctx context.Context, slice int64) (mark int64, err error) {
	var last *int64
	err = s.log.session.Serial(ctx, s.log.statements.last, s.partition(slice)...).Scan(&last)
	if err != nil && !errors.Is(err, gocql.ErrNotFound) {
		return 0, fmt.Errorf("read the mark of the last block: %w", err)
	}
	if last != nil {
		mark = *last
	}
	return mark, nil
}

// span is what there is of the shard, beside what was read of it.
func (s *shard) span(ctx context.Context, read claimlog.Position) (claimlog.Span, error) {
	end, seen, err := s.end(ctx)
	if err != nil {
		return claimlog.Span{}, err
	}
	first, err := s.cachedFirst(ctx, end)
	if err != nil {
		return claimlog.Span{}, err
	}
	span := claimlog.Span{First: first, End: end}
	if read.Epoch < 0 || read.Next == 0 || read.Next == end && seen {
		return span, nil
	}
	if read.Next > end {
		return span, fmt.Errorf("%w: it was read up to place %d, and has those up to %d",
			claimlog.ErrCut, read.Next, end)
	}
	_, found, err := s.row(ctx, read.Next-1)
	if err != nil || found {
		return span, err
	}
	// It may have expired with all that was behind it: then the slice was filled just now.
	if span.First, err = s.first(ctx, end); err == nil && read.Next > span.First {
		err = fmt.Errorf("%w: place %d, which was read, is gone, and what is behind it is not",
			claimlog.ErrCut, read.Next-1)
	}
	return span, err
}
