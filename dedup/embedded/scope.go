package embedded

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/hashlog"
	"github.com/kdedup/kdedup/internal/steadyclock"
)

// scopeState is a scope in use. Whoever decides about IDs holds the token of deciding, from the
// look-up to the append, so that what was read is still true when it is written. Syncs come after
// that, and calls share them.
type scopeState struct {
	record scopeRecord
	claims *hashlog.Log
	// the longest that a claim was made for since the store was opened; 0: none was made
	ttl atomic.Int64

	deciding chan struct{}
	reader   *hashlog.Reader // these three are for the goroutine that decides
	batch    hashlog.Batch
	memory   []byte
}

func newScopeState(record scopeRecord, claims *hashlog.Log) *scopeState {
	return &scopeState{record: record, claims: claims, deciding: make(chan struct{}, 1),
		reader: claims.NewReader()}
}

func (s *scopeState) decide(ctx context.Context) error {
	select {
	case s.deciding <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *scopeState) decided() { <-s.deciding }

// claim claims for the ttl of a scope from now.
func (s *scopeState) claim(
	ctx context.Context, scope dedup.Scope, claims []dedup.Claim, now, ends time.Time,
	answers []dedup.Answer,
) (hashlog.Mark, error) {
	claimedAt := dedup.ClaimTime(claims, now).UnixMilli()
	return s.decideAll(ctx, now, answers, func(i int) proposal {
		c := &claims[i]
		return proposal{id: c.ID, mine: claimRecord{owner: c.Owner, fingerprint: c.Fingerprint,
			claimedAt: claimedAt}, ends: ends.UnixMilli()}
	}, func(i int, owner dedup.Coordinates, until int64) bool {
		left := scope.TTL - time.Duration(ends.UnixMilli()-until)*time.Millisecond
		return claims[i].Renews(scope, owner) && left <= scope.DueAt()
	})
}

// proposal is a claim that is made if its ID is free.
type proposal struct {
	id    dedup.ID
	mine  claimRecord
	ends  int64 // in milliseconds
	ended bool  // before it could be made
}

// renewal tells whether the proposal puts off the end of the claim that its ID has.
type renewal func(i int, owner dedup.Coordinates, ends int64) bool

// noRenewal is for claims that renew none.
func noRenewal(int, dedup.Coordinates, int64) bool { return false }

// decideAll reads every ID and appends the claims of those that are free, and those that are
// renewed. The answers are good once the mark is synced: it stands for what was appended, and for
// all that was read.
func (s *scopeState) decideAll(
	ctx context.Context, now time.Time, answers []dedup.Answer, propose func(i int) proposal,
	renews renewal,
) (hashlog.Mark, error) {
	if err := s.decide(ctx); err != nil {
		return 0, err
	}
	defer s.decided()
	s.batch.Reset()
	for i := range answers {
		if i%64 == 0 && ctx.Err() != nil { // a look-up reads the disk
			return 0, context.Cause(ctx)
		}
		p := propose(i)
		key := append(s.memory[:0], p.id...)
		owner, until, found, err := s.get(s.reader, key, now)
		switch {
		case err != nil:
			return 0, err
		case found:
			answers[i] = owner.answer()
			if renews(i, owner.owner, until) {
				s.put(key, &owner, p.ends)
			}
			continue
		case p.ended:
			continue
		}
		s.put(key, &p.mine, p.ends)
		answers[i] = p.mine.answer()
		answers[i].Outcome = dedup.Applied
	}
	if s.batch.Len() == 0 {
		return s.claims.Latest(), nil
	}
	return s.append(ctx)
}

// put adds a claim to the batch; the key is in the memory.
func (s *scopeState) put(key []byte, claim *claimRecord, ends int64) {
	s.memory = claim.append(key)
	s.batch.Put(s.memory[:len(key)], s.memory[len(key):], ends)
}

func (s *scopeState) keepFor(ttl time.Duration) {
	if ttl := int64(ttl); ttl > s.ttl.Load() {
		s.ttl.Store(ttl)
	}
}

// patience is how long a clock must have stood by a time before files go that have ended by it.
// Longer than a ttl it need not be: the files would grow to several times what they have to hold.
func (s *scopeState) patience() time.Duration {
	if ttl := time.Duration(s.ttl.Load()); ttl > 0 {
		return min(ttl, steadyclock.MostPatience)
	}
	return steadyclock.MostPatience
}

// free deletes the claim of an ID, if there is one.
func (s *scopeState) free(ctx context.Context, key []byte, now time.Time) (hashlog.Mark, error) {
	if err := s.decide(ctx); err != nil {
		return 0, err
	}
	defer s.decided()
	_, ends, found, err := s.get(s.reader, key, now)
	if err != nil || !found {
		return s.claims.Latest(), err
	}
	s.batch.Reset()
	s.batch.Delete(key, ends)
	return s.append(ctx)
}

func (s *scopeState) append(ctx context.Context) (hashlog.Mark, error) {
	mark, err := s.claims.Append(ctx, &s.batch)
	return mark, cmp.Or(s.err(), err)
}

// get returns the claim that holds an ID, unless there is none or it has ended.
func (s *scopeState) get(
	reader *hashlog.Reader, key []byte, now time.Time,
) (record claimRecord, ends int64, found bool, err error) {
	value, ends, err := reader.Get(key)
	if err != nil || value == nil || ends <= now.UnixMilli() {
		return record, 0, false, err
	}
	record, err = parseRecord(value)
	return record, ends, err == nil, err
}

// sync returns when everything up to the mark is durable. After an error it may be or not.
func (s *scopeState) sync(ctx context.Context, mark hashlog.Mark) error {
	err := s.claims.Sync(ctx, mark)
	return cmp.Or(s.err(), err) // the former has the remedy
}

// err is why nothing can be written any more.
func (s *scopeState) err() error {
	if err := s.claims.Err(); err != nil {
		return fmt.Errorf(
			"the store cannot write its files; make room or replace the disk, then restart: %w", err)
	}
	return nil
}
