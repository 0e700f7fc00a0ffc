package claimlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

// A log loses its beginning, which retention removes. Should it lose more than that (records were
// deleted by hand, retention was short for a while), a process that has no index yet would take
// copies of what is gone for first ones. The blocks that are left tell: each says how far its
// writer had read, and of what time the last block of that was.

var _ dedup.Lossy = (*Store)(nil)

// acceptedKey is where a group's registry has the time up to which claims may be gone.
const acceptedKey = "loss"

const lossRemedy = "claim what is on the clean topic with kdedup backfill --force, and run: " +
	"kdedup setup -c FILE --accept-empty-store"

// checkBeginning refuses to make an index of a log whose beginning was removed before its time.
func (s *space) checkBeginning(ctx context.Context, r *reading, spans []Span) error {
	if r.log.Retention() == 0 || s.only != nil {
		return nil
	}
	return s.store.checkFirst(ctx, s.group, s.store.scopesOf(s.group), r.machine.agreed,
		s.leaving(r.machine.ahead), spans)
}

// Lost implements dedup.Lossy.
func (s *Store) Lost(ctx context.Context, scope dedup.Scope, settled time.Time) error {
	if err := s.lost(ctx, scope, settled); err != nil {
		return fmt.Errorf("claim log of %s: %w", scope.ConsumerGroup, err)
	}
	return nil
}

func (s *Store) lost(ctx context.Context, scope dedup.Scope, settled time.Time) error {
	if s.o.Keepers == nil {
		if has, err := s.hasIndex(scope.ConsumerGroup, allShards); has || err != nil {
			return err // the index has what the log had
		}
	}
	emptied, err := s.lostInLog(ctx, scope, settled)
	if !errors.Is(err, dedup.ErrLost) || s.o.Keepers == nil {
		return err
	}
	if emptied > 0 { // whoever keeps a shard would find nothing missing in it
		return s.unlessIndexed(scope.ConsumerGroup, emptied, err)
	}
	return s.unlessKept(ctx, scope, err)
}

// hasIndex tells whether this process has read a shard before, or all.
func (s *Store) hasIndex(group string, shard int) (bool, error) {
	if s.o.Path == "" {
		return false, nil
	}
	_, err := os.Stat(filepath.Join(s.indexPath(group, shard), progressName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// unlessIndexed returns an error about what is gone, unless this process has an index of each
// shard.
func (s *Store) unlessIndexed(group string, shards int, lost error) error {
	for shard := range shards {
		if has, err := s.hasIndex(group, shard); err != nil || !has {
			return errors.Join(err, lost)
		}
	}
	return nil
}

// unlessKept returns an error about what is gone, unless each shard has a keeper: that has read the
// shard before, or else finds the same.
func (s *Store) unlessKept(ctx context.Context, scope dedup.Scope, lost error) error {
	ctx, cancel := context.WithTimeout(ctx, s.o.Wait)
	defer cancel()
	if s.Await(ctx, scope) == nil {
		return nil
	}
	return lost
}

// lostInLog tells whether the log lacks claims that still hold. If it has no blocks at all, emptied
// is the number of its shards.
func (s *Store) lostInLog(
	ctx context.Context, scope dedup.Scope, settled time.Time,
) (emptied int, err error) {
	log, err := s.o.Opener.Open(ctx, scope.ConsumerGroup)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	decided, err := s.o.Opener.Registry(scope.ConsumerGroup).Decided(ctx, agreementKey)
	if err != nil || decided == nil || log.Retention() == 0 {
		return 0, err
	}
	agreed, err := parseAgreement(decided, log.Shards())
	if err != nil {
		return 0, err
	}
	spans, err := log.Spans(ctx, unread(agreed.Shards))
	if err != nil {
		return 0, err
	}
	kept := func(span Span) bool { return span.First == 0 || span.First < span.End }
	if !slices.ContainsFunc(spans, kept) && s.o.now().Sub(settled) < scope.TTL {
		return agreed.Shards, s.unlessAccepted(ctx, scope.ConsumerGroup, settled, fmt.Errorf(
			"%w: it has none, and the fences of the group build on claims up to %v; %s", dedup.ErrLost,
			settled.UTC().Format(time.RFC3339), lossRemedy))
	}
	return 0, s.checkFirst(ctx, scope.ConsumerGroup, []dedup.Scope{scope}, agreed,
		unread(agreed.Shards), spans)
}

func unread(shards int) []Position {
	at := make([]Position, shards)
	for i := range at {
		at[i].Epoch = -1
	}
	return at
}

// checkFirst reads the first blocks of the shards of which nothing was read yet, which are not left
// to others, and whose beginning is gone.
func (s *Store) checkFirst(
	ctx context.Context, group string, scopes []dedup.Scope, agreed agreement, read []Position,
	spans []Span,
) error {
	var from []int
	for i, span := range spans {
		if !read[i].Left() && read[i].Epoch < 0 && span.First > 0 && span.First < span.End {
			from = append(from, i)
		}
	}
	if len(from) == 0 {
		return nil
	}
	firsts, err := s.readFirst(ctx, group, agreed, spans, from)
	if err != nil {
		return err
	}
	notes := make([]carried, len(scopes))
	for i, scope := range scopes {
		if notes[i], err = s.carriedOf(ctx, scope); err != nil {
			return err
		}
	}
	now := s.o.now()
	for _, shard := range from {
		f := firsts[shard]
		if !f.known {
			continue
		}
		gone, ends := time.UnixMilli(f.front), time.UnixMilli(f.missing(shard, notes))
		if !ends.After(now) {
			continue
		}
		if err := s.unlessAccepted(ctx, group, gone, fmt.Errorf(
			"%w: shard %d begins behind a block of %v, whose claims hold until %v; %s", dedup.ErrLost,
			shard, gone.UTC().Format(time.RFC3339), ends.UTC().Format(time.RFC3339),
			lossRemedy)); err != nil {
			return err
		}
	}
	return nil
}

// unlessAccepted returns an error about claims that were made at a time.
func (s *Store) unlessAccepted(ctx context.Context, group string, at time.Time, lost error) error {
	text, err := s.o.Opener.Registry(group).Decided(ctx, acceptedKey)
	if err != nil {
		return err
	}
	if accepted, err := strconv.ParseInt(string(text), 10, 64); err == nil &&
		at.UnixMilli() <= accepted {
		return nil
	}
	return lost
}

// AcceptLoss implements dedup.Lossy.
func (s *Store) AcceptLoss(ctx context.Context, scope dedup.Scope) error {
	now := strconv.FormatInt(s.o.now().UnixMilli(), 10)
	err := replace(ctx, s.o.Opener.Registry(scope.ConsumerGroup), acceptedKey, []byte(now))
	if err != nil {
		return fmt.Errorf("accept that claims are gone: claim log: %w", err)
	}
	return nil
}

// first is what the first blocks of a shard say of what was in front of them.
type first struct {
	known bool
	front int64 // the time of a block that was there, in milliseconds
	ends  int64 // until when claims that were there may hold
	done  bool
}

// missing is when the last claim may end that stood in front of the first blocks of the shard, and
// was not written again behind them, by the notes of all scopes that matter; without any, of all.
func (f *first) missing(shard int, notes []carried) (ends int64) {
	if len(notes) == 0 {
		return f.ends
	}
	for i := range notes {
		if notes[i].at(shard) < f.front {
			ends = max(ends, f.ends, notes[i].Ends)
		}
	}
	return ends
}

// firstBlocks is how many blocks of a shard are looked at.
const firstBlocks = 256

var errSeen = errors.New("enough was read")

// readFirst has a log of its own: one is read once.
func (s *Store) readFirst(
	ctx context.Context, group string, agreed agreement, spans []Span, from []int,
) ([]first, error) {
	log, err := s.o.Opener.Open(ctx, group)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	firsts, at := make([]first, len(spans)), unread(len(spans))
	left := len(from)
	for i := range firsts {
		firsts[i].done, at[i].Next = true, spans[i].End
	}
	for _, i := range from {
		firsts[i].done, at[i].Next = false, spans[i].First
	}
	var b block
	err = log.Read(ctx, at, func(entries []Entry) error {
		for _, e := range entries {
			f, span := &firsts[e.Shard], spans[e.Shard]
			if f.done {
				continue
			}
			if b.parse(e.Block) == nil && b.log == agreed.ID {
				f.note(&b, span.First)
			}
			if e.At+1 >= min(span.End, span.First+firstBlocks) {
				f.done = true
				left--
			}
		}
		if left == 0 {
			return errSeen
		}
		return nil
	})
	if !errors.Is(err, errSeen) {
		return nil, fmt.Errorf("read the first blocks: %w", err)
	}
	return firsts, nil
}

// note takes a block whose writer had not read beyond the place at which the log begins.
func (f *first) note(b *block, begins int64) {
	if b.seen.Epoch < 0 || b.seen.Next > begins || b.seen.Time == 0 {
		return
	}
	f.known = true
	ends := b.seen.Ends
	if b.version == firstVersion {
		ends = b.seen.Time + b.ttl.Milliseconds()
	}
	f.front, f.ends = max(f.front, b.seen.Time), max(f.ends, ends)
}
