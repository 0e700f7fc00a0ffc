package claimlog

import (
	"github.com/kdedup/kdedup/dedup"
)

// renew puts off the ends of the claims of a block. Their writer has read the shard up to a place,
// and found that they hold there, with the owners and ends that the block repeats. So it is known
// from the block, and from what stands between that place and the block, whether they still hold:
// they do unless they have ended by now, something of their scope was removed since, or somebody
// else has claimed their IDs since. The last can be where the log's time went back: a claimant that
// had read less took them for ended. The owner is therefore the one in the block, also for a
// process whose log does not begin early enough to know the claim, or that knows one which had lost
// against it. (Blocks of firstVersion know no time that goes back.)
//
// A renewal that does not count is told to nobody, and its copies claim again.
func (m *machine) renew(
	tag [tagBytes]byte, e Entry, at moment, tell func(int, dedup.Answer),
) error {
	b, s, now := &m.block, &m.shards[e.Shard], at.now
	if !b.reaches(e, s, now, m.late) || s.removedSince(b.scope, b.seen.Next) {
		return nil
	}
	for i := range b.claims {
		c, life := &b.claims[i], b.lives[i]
		if life.ends <= now {
			continue
		}
		mine := held{c.owner, c.fingerprint, life.claimed, e.At}
		if m.only == nil || m.only(b.scope, dedup.ID(c.id)) {
			m.key = append(append(m.key[:0], tag[:]...), c.id...)
			owner, until, known, err := m.last(m.key, 0)
			if err != nil {
				return err
			}
			same := known && owner.owner == mine.owner && owner.claimedAt == mine.claimedAt
			if known && !same && owner.place >= b.seen.Next && b.version > firstVersion {
				continue
			}
			ends := max(now+at.grace+b.ttl.Milliseconds(), life.ends)
			if same { // another renewal may have given it a later end
				ends = max(ends, until)
			}
			if err := m.put(s, &mine, now, ends); err != nil {
				return err
			}
		}
		if tell != nil {
			tell(i, mine.answer(dedup.Exists))
		}
	}
	return nil
}

// due are claims that copies renew, as they are where their shard was read up to.
type due struct {
	at     []int32 // of the copies
	claims []dedup.Claim
	lives  []life
}

func (d *due) add(at int32, id dedup.ID, owner *held, ends int64) {
	d.at = append(d.at, at)
	d.claims = append(d.claims,
		dedup.Claim{ID: id, Owner: owner.owner, Fingerprint: owner.fingerprint})
	d.lives = append(d.lives, life{owner.claimedAt, ends})
}

// isDue reports whether a claim that ends at a time is renewed by a copy of it that the shard has
// now.
func (m *machine) isDue(
	shard int, scope *dedup.Scope, c *dedup.Claim, owner dedup.Coordinates, ends int64,
) bool {
	return scope.Sliding && c.Renews(*scope, owner) &&
		ends-m.shards[shard].Time <= scope.DueAt().Milliseconds()
}

// renewals makes the blocks for what is due in a shard.
func (c *call) renewals(shard int, seen sight, d *due, name func() head) {
	places := make([]int32, len(d.at))
	for i := range places {
		places[i] = int32(i)
	}
	for len(places) > 0 {
		n, _ := blockful(d.claims, places)
		h := name()
		p := &part{call: c, id: h.id, shard: shard}
		for _, i := range places[:n] {
			p.at = append(p.at, d.at[i])
		}
		p.block = renewalBlock(h, c.scope.TTL, seen, d.claims, d.lives, places[:n])
		c.parts, places = append(c.parts, p), places[n:]
	}
}
