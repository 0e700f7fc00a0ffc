package cassandralog

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/kdedup/kdedup/dedup/claimlog"
)

// longestOpening is how much time may pass between the decision to begin a slice and its first
// block: less than any block lives.
const longestOpening = claimlog.Margin / 2

// append puts blocks behind all that were read, if there are no others. If there are, it reads
// them. An answer that does not come leaves all open: the next turn tries the same, and finds the
// blocks there, or appends them.
func (s *shard) append(ctx context.Context, batch []*pending) (read int, err error) {
	slice := sliceOf(s.at)
	if s.at == firstOf(slice) {
		return s.begin(ctx, slice, batch)
	}
	return s.insertThen(ctx, batch, func() error { return nil })
}

// insertThen shows what was inserted if the check behind that finds nothing wrong.
func (s *shard) insertThen(
	ctx context.Context, batch []*pending, check func() error,
) (read int, err error) {
	rows, applied, there, err := s.insert(ctx, batch)
	switch {
	case err != nil:
		return 0, err
	case !applied:
		return s.lost(ctx, there)
	}
	if err := check(); err != nil {
		return 0, err
	}
	s.losses = 0
	return len(rows), s.show(ctx, rows)
}

// begin is append for the first place of a slice, which has no mark of what was read. There are no
// blocks that this process does not know and cannot see any more, if the block in front lives, for
// they would outlive it; or if this process opened the slice just now.
func (s *shard) begin(ctx context.Context, slice int64, batch []*pending) (int, error) {
	began := s.log.moment()
	mine, gone, err := s.open(ctx, slice)
	if err != nil {
		return 0, err
	}
	if gone {
		return s.mustPage(ctx)
	}
	if mine && (s.opened.slice != slice || s.opened.at == moment{}) {
		s.opened = opening{slice, began}
	}
	longest := began.wall.Add(longestOpening + clockTolerance).UnixMilli()
	if s.last.mark == 0 || s.last.ends < longest {
		if began = s.opened.at; !mine || s.log.since(began) > longestOpening {
			return s.awaitOpener(ctx, slice)
		}
	}
	return s.insertThen(ctx, batch, func() error { return s.checkBegun(ctx, slice, began) })
}

// opening is when this process opened a slice.
type opening struct {
	slice int64
	at    moment
}

// checkBegun refuses a first block that came too late: others may have gone on without it.
func (s *shard) checkBegun(ctx context.Context, slice int64, began moment) error {
	at, _, err := s.pointer(ctx)
	if err != nil {
		return err
	}
	behind := false
	if at > slice { // perhaps since then
		_, full, err := s.row(ctx, firstOf(slice+1)-1)
		if err != nil {
			return err
		}
		behind = !full
	}
	if behind || s.log.since(began) > longestOpening {
		return fmt.Errorf("%w: the first block of slice %d came too late", claimlog.ErrCut, slice)
	}
	return nil
}

// wrongTime is by how much a block is ahead if its writer's clock was wrong, and not a little ahead
// of that of its node.
const wrongTime = 4 * clockTolerance

// rows are the blocks as they are to be written now. The end of what must be kept never goes back,
// nor does the time of the log, unless that of the block in front was wrong.
func (s *shard) rows(batch []*pending, now time.Time) []row {
	rows := make([]row, len(batch))
	front := s.last
	for i, p := range batch {
		rows[i] = row{
			seq: s.at + int64(i), mark: p.mark, after: front.mark, block: p.block,
			time: now.UnixMilli(),
		}
		if ahead := front.time - rows[i].time; ahead <= wrongTime.Milliseconds() {
			rows[i].time += max(0, ahead)
		}
		rows[i].ends = max(rows[i].time+p.keep.Milliseconds(), front.ends)
		front = rows[i]
	}
	return rows
}

// insert appends blocks to the slice, and returns the rows, or what is in their places instead.
func (s *shard) insert(
	ctx context.Context, batch []*pending,
) (rows []row, applied bool, there []row, err error) {
	if err := s.log.session.Fit(); err != nil {
		return nil, false, nil, err
	}
	now, err := s.log.time(ctx)
	if err != nil {
		return nil, false, nil, err
	}
	rows = s.rows(batch, now)
	applied, there, err = s.insertRows(ctx, rows, now)
	return rows, applied, there, err
}

func (s *shard) insertRows(
	ctx context.Context, rows []row, now time.Time,
) (applied bool, there []row, err error) {
	slice := sliceOf(s.at)
	part := s.partition(slice)
	ttl := func(r row) int { return int((r.ends-now.UnixMilli())/1000) + 1 }
	newest := rows[len(rows)-1]
	values := append([]any{ttl(newest), newest.mark}, part...)
	if s.at == firstOf(slice) {
		values = append(values, nil) // no block, or none that lives
	} else {
		values = append(values, s.last.mark)
	}
	for _, r := range rows {
		values = append(values, part...)
		values = append(values, r.seq, r.append(make([]byte, 0, rowHeaderBytes+len(r.block))),
			ttl(r))
	}
	iter := s.log.session.Conditional(ctx, s.log.statements.appends[len(rows)-1], values...).Iter()
	var (
		dest  = make([]any, len(iter.Columns()))
		seq   int64
		data  []byte
		known bool
	)
	for i, column := range iter.Columns() {
		switch column.Name {
		case "[applied]":
			dest[i], known = &applied, true
		case "seq":
			dest[i] = &seq
		case "block":
			dest[i] = &data
		}
	}
	for iter.Scan(dest...) {
		if len(data) > 0 && !applied && seq == s.at+int64(len(there)) {
			r := row{seq: seq}
			if err := r.parse(data); err != nil {
				_ = iter.Close()
				return false, nil, err
			}
			there = append(there, r)
		}
		data = nil
	}
	if err := iter.Close(); err != nil {
		return false, nil, fmt.Errorf("append to place %d: %w", s.at, err)
	}
	if !known {
		return false, nil, fmt.Errorf("append to place %d: an answer without [applied]", s.at)
	}
	return applied, there, nil
}

// appends are the statements for 1 to batchBlocks blocks.
func appends(setLast, insert string) []string {
	var all []string
	for n := range batchBlocks {
		all = append(all, "BEGIN UNLOGGED BATCH "+setLast+"; "+strings.Repeat(insert+"; ", n+1)+
			"APPLY BATCH")
	}
	return all
}

// lost goes on where others were faster, this process itself perhaps, whose answer was lost. It
// reads what there is now, so that the next try is at the end.
func (s *shard) lost(ctx context.Context, there []row) (read int, err error) {
	s.losses++
	if err := s.show(ctx, there); err != nil {
		return 0, err
	}
	if len(there) > 0 {
		if s.losses > 1 {
			s.rest(ctx, min(time.Millisecond<<min(s.losses, 6), 50*time.Millisecond), false)
		}
		more, err := s.pageIfAny(ctx)
		return len(there) + more, err
	}
	if read, err = s.page(ctx, true); err != nil || read > 0 {
		return read, err
	}
	return s.stranded(ctx, sliceOf(s.at))
}

// mustPage reads on where there surely are blocks.
func (s *shard) mustPage(ctx context.Context) (read int, err error) {
	if read, err = s.page(ctx, true); err == nil && read == 0 {
		err = fmt.Errorf("%w: it was read up to place %d, behind which nothing can be read, and it "+
			"goes on; %s", claimlog.ErrCut, s.at, lostRemedy)
	}
	return read, err
}

// pageIfAny reads on in the same slice; at its end there is nothing yet.
func (s *shard) pageIfAny(ctx context.Context) (int, error) {
	if s.at == firstOf(sliceOf(s.at)) {
		return 0, nil
	}
	return s.page(ctx, false)
}

// stranded is for an append that was refused although there is nothing in its place: all blocks of
// the slice have expired, or the log is not the one that was read.
func (s *shard) stranded(ctx context.Context, slice int64) (int, error) {
	last, err := s.lastMark(ctx, slice)
	if err != nil {
		return 0, err
	}
	at, _, err := s.pointer(ctx)
	if err != nil {
		return 0, err
	}
	if last != 0 || at != slice {
		return 0, fmt.Errorf("%w: it was read up to place %d, and what is behind that does not "+
			"follow; %s", claimlog.ErrCut, s.at, lostRemedy)
	}
	if err := s.compareNone(slice); err != nil {
		return 0, err
	}
	if err := s.fill(ctx, slice); err != nil {
		return 0, err
	}
	return s.page(ctx, true)
}

// awaitOpener waits for the first block of a slice that another process opened. If it does not
// come, that process died, or the block has expired: nobody writes it then any more.
func (s *shard) awaitOpener(ctx context.Context, slice int64) (int, error) {
	for n := range lookAgain {
		if read, err := s.page(ctx, true); err != nil || read > 0 {
			return read, err
		}
		s.rest(ctx, min(time.Millisecond<<min(n, 6), lookAgainAfter), false)
	}
	if err := s.fill(ctx, slice); err != nil {
		return 0, err
	}
	return s.page(ctx, true)
}
