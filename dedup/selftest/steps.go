package selftest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/pause"
)

// What a store answers, in words.
const (
	applied   = "applied"
	itsOwn    = "refused: it owns the ID already"
	others    = "refused: the owner is returned"
	partly    = "the known ID refused, the others applied"
	allItsOwn = "refused: each owns its ID already"
	lookedUp  = "the owner is found, and nobody for another ID"
	freeAgain = "free again"
	kept      = "refused for as long as copies come"
	nothing   = "nothing is left"
)

// answer is what came.
type answer struct {
	text   string
	passed bool
}

func exactly(expected, got string) answer { return answer{got, got == expected} }

type step struct {
	name, expected string
	ask            func(ctx context.Context) (answer, error)
}

// record is the claim of record n for an ID; records with other numbers have other content.
func record(id string, n byte) dedup.Claim {
	return dedup.Claim{
		ID: dedup.ID(id),
		Owner: dedup.Coordinates{TopicID: [16]byte{15: 1}, Partition: int32(n),
			Offset: int64(n), LeaderEpoch: 1},
		Fingerprint: dedup.Fingerprint{15: n},
	}
}

func (s *subject) steps() []step {
	owner, copied, changed := record("order-1", 1), record("order-1", 2), record("order-1", 3)
	copied.Fingerprint = owner.Fingerprint
	batch := []dedup.Claim{copied, record("order-2", 4), record("order-3", 5), record("order-4", 6),
		record("order-5", 7)}
	one := func(name, expected string, c dedup.Claim) step {
		return step{name, expected, func(ctx context.Context) (answer, error) {
			answers, err := s.claim(ctx, s.scope, c)
			if err != nil {
				return answer{}, err
			}
			return exactly(expected, words(answers[0], c, owner)), nil
		}}
	}
	steps := []step{
		one(First, applied, owner),
		one(Again, itsOwn, owner),
		one(Other, others, copied),
		one(Conflict, others, changed),
		{Batch, partly, func(ctx context.Context) (answer, error) {
			return s.batch(ctx, batch, owner, applied, partly)
		}},
		{Repeat, allItsOwn, func(ctx context.Context) (answer, error) {
			return s.batch(ctx, append([]dedup.Claim{owner}, batch[1:]...), owner, itsOwn,
				allItsOwn)
		}},
		{LookUp, lookedUp, func(ctx context.Context) (answer, error) {
			return s.lookUp(ctx, owner)
		}},
		{Expiry, freeAgain, s.expiry},
	}
	if s.sliding {
		steps = append(steps, step{Renewal, kept, s.renewal})
	}
	return append(steps, step{CleanUp, nothing, s.cleanUp})
}

// words say what the answer to a claim means while the given record owns its ID.
func words(got dedup.Answer, c, owner dedup.Claim) string {
	switch {
	case got.Outcome == dedup.Applied:
		return applied
	case got.Owner == c.Owner && got.Fingerprint == c.Fingerprint:
		return itsOwn
	case c.ID == owner.ID && got.Owner == owner.Owner && got.Fingerprint == owner.Fingerprint:
		return others
	}
	return fmt.Sprintf(
		"refused: a record is returned that does not own the ID (partition %d, offset %d)",
		got.Owner.Partition, got.Owner.Offset)
}

// batch claims all at once. The first ID is the known one; each of the others must be answered in
// the given words.
func (s *subject) batch(
	ctx context.Context, claims []dedup.Claim, owner dedup.Claim, rest, expected string,
) (answer, error) {
	answers, err := s.claim(ctx, s.scope, claims...)
	if err != nil {
		return answer{}, err
	}
	known := others
	if claims[0].Owner == owner.Owner {
		known = itsOwn
	}
	var wrong []string
	for i, a := range answers {
		want := rest
		if i == 0 {
			want = known
		}
		if got := words(a, claims[i], owner); got != want {
			wrong = append(wrong, fmt.Sprintf("%s %s", claims[i].ID, got))
		}
	}
	if len(wrong) > 0 {
		return answer{strings.Join(wrong, "; "), false}, nil
	}
	return answer{expected, true}, nil
}

func (s *subject) lookUp(ctx context.Context, owner dedup.Claim) (answer, error) {
	found, err := s.store.Lookup(ctx, s.scope, owner.ID)
	if err != nil {
		return answer{}, err
	}
	free, err := s.store.Lookup(ctx, s.scope, "order-6")
	switch {
	case err != nil:
		return answer{}, err
	case found.Outcome == dedup.Undecided:
		return answer{"nobody is found for an ID that is owned", false}, nil
	case found.Owner != owner.Owner || found.Fingerprint != owner.Fingerprint:
		return answer{"another record than the owner is found", false}, nil
	case free.Outcome != dedup.Undecided:
		return answer{"somebody is found for an ID that nobody has claimed", false}, nil
	}
	return answer{lookedUp, true}, nil
}

// expiry waits until another record may claim the ID.
func (s *subject) expiry(ctx context.Context) (answer, error) {
	brief := s.scope
	brief.TTL = expiring
	if _, err := s.claim(ctx, brief, record("order-7", 8)); err != nil {
		return answer{}, err
	}
	next := record("order-7", 9)
	for start := time.Now(); time.Since(start) < expiresIn; {
		if !pause.For(ctx, tick) {
			return answer{}, context.Cause(ctx)
		}
		answers, err := s.claim(ctx, brief, next)
		if err != nil {
			return answer{}, err
		}
		if answers[0].Outcome == dedup.Applied {
			return answer{fmt.Sprintf("%s after %.1f s, with a ttl of %v", freeAgain,
				time.Since(start).Seconds(), expiring), true}, nil
		}
	}
	return answer{fmt.Sprintf("still refused after %v, with a ttl of %v", expiresIn, expiring),
		false}, nil
}

// renewal has copies come for half as long again as the ttl. Where they came too slowly to tell
// anything, that is no answer.
func (s *subject) renewal(ctx context.Context) (answer, error) {
	sliding := s.scope
	sliding.TTL, sliding.Sliding = renewing, true
	owner, copied := record("order-8", 10), record("order-8", 11)
	start := time.Now()
	if _, err := s.claim(ctx, sliding, owner); err != nil {
		return answer{}, err
	}
	last := start
	for time.Since(start) < 3*renewing/2 {
		if !pause.For(ctx, tick) {
			return answer{}, context.Cause(ctx)
		}
		asked := time.Now()
		answers, err := s.claim(ctx, sliding, copied)
		switch got := words(answers[0], copied, owner); {
		case err != nil:
			return answer{}, err
		case time.Since(last) > renewing/2:
			return answer{}, fmt.Errorf("a claim took %v, too long to tell whether copies renew",
				time.Since(last).Round(time.Millisecond))
		case got != others:
			return answer{fmt.Sprintf("%s after %.1f s, with a ttl of %v and copies all the time",
				got, time.Since(start).Seconds(), renewing), false}, nil
		}
		last = asked
	}
	return answer{kept, true}, nil
}

// cleanUp releases everything and looks for what is left.
func (s *subject) cleanUp(ctx context.Context) (answer, error) {
	if err := s.release(ctx); err != nil {
		return answer{}, err
	}
	for _, id := range s.claimed {
		left, err := s.store.Lookup(ctx, s.scope, id)
		if err != nil {
			return answer{}, err
		}
		if left.Outcome != dedup.Undecided {
			return answer{fmt.Sprintf("%s is still owned after its release", id), false}, nil
		}
	}
	return answer{nothing, true}, nil
}
