package claimlog

import (
	"time"

	"github.com/kdedup/kdedup/dedup"
)

// lateness is how much later than what its claimant had read a block of claims may come to stand in
// the log: so long a log must keep blocks beyond the ttl. It also keeps an append that was given up
// long ago from claiming anything.
const lateness = 10 * time.Minute

// Margin is how much longer than the ttl a log must keep blocks: for those that come late, and
// because clocks of brokers differ.
const Margin = time.Hour

// claim judges the claims of a block. Their claimant has read the shard up to a place, and found
// that all of them were free there; so only what was claimed since can be in their way. Older
// blocks need not be known, which is why processes agree whose log began at different places. (Were
// copies claimed against all that is there, the first copy that retention has left would be taken
// for the owner by a process that reads the log again.)
//
// What the claimant has read must be what is there. It surely is if the last block that it read has
// the epoch of this one: an epoch is written by one leader, and nothing below one of its blocks is
// cut without that block. And the block must not come later than it may. Otherwise it claims
// nothing, and its claims stay undecided; the claimant has then read what it had not, and claims
// again.
//
// An ID to which something happened since that place is claimed by what happened, if that holds. If
// it does not hold any more, because it has ended or was removed, the claim stays undecided, too:
// it may be one that was given up long ago, for a record that was forwarded since, and would take
// away the next message of that ID. (Blocks of firstVersion take such an ID.)
//
// An imported claim has its own times. One that has ended by now is not made, and is told as none.
func (m *machine) claim(
	tag [tagBytes]byte, e Entry, at moment, tell func(int, dedup.Answer),
) error {
	b, s, now := &m.block, &m.shards[e.Shard], at.now
	strict := b.version > firstVersion
	if !b.reaches(e, s, now, m.late) || strict && s.removedSince(b.scope, b.seen.Next) {
		return nil
	}
	since := m.since[e.Shard].of(b.seen.Next)
	nothingSince := since == m.index.end() // nor will there be, until the block is flushed
	mine := held{claimedAt: now, place: e.At}
	if b.after >= now {
		mine.claimedAt = b.after + 1
	}
	ends := now + at.grace + b.ttl.Milliseconds()
	for i := range b.claims {
		c := &b.claims[i]
		m.key = append(append(m.key[:0], tag[:]...), c.id...)
		var (
			owner held
			until int64
			found bool
		)
		if !nothingSince {
			var err error
			if owner, until, found, err = m.last(m.key, since); err != nil {
				return err
			}
			found = found && owner.place >= b.seen.Next
		}
		if found && until <= now {
			if strict {
				continue
			}
			found = false
		}
		if b.kind == kindImport {
			mine.claimedAt, ends = b.lives[i].claimed, b.lives[i].ends
			if !found && ends <= now {
				if tell != nil {
					tell(i, dedup.Answer{})
				}
				continue
			}
		}
		if !found && (m.only == nil || m.only(b.scope, dedup.ID(c.id))) {
			mine.owner, mine.fingerprint = c.owner, c.fingerprint
			if err := m.put(s, &mine, now, ends); err != nil {
				return err
			}
		}
		switch {
		case tell == nil:
		case found:
			tell(i, owner.answer(dedup.Exists))
		default:
			tell(i, mine.answer(dedup.Applied))
		}
	}
	return nil
}

// put makes a claim the owner of the key. What it replaces may end later, and must not come back
// when the claim has ended and its part of the index is dropped.
func (m *machine) put(s *shardState, mine *held, now, ends int64) error {
	if ends < s.Latest {
		value, until, err := m.index.get(m.key, 0)
		if err != nil {
			return err
		}
		if value != nil && until > ends {
			m.index.remove(m.key, until)
		}
	}
	m.value = mine.append(m.value[:0])
	m.index.put(m.key, m.value, ends)
	s.noteEnd(now, ends)
	return nil
}

// noteEnd notes until when, and for how long, a claim holds.
func (s *shardState) noteEnd(now, ends int64) {
	if s.Latest <= now {
		s.Longest = 0
	}
	s.Latest, s.Longest = max(s.Latest, ends), max(s.Longest, ends-now)
}

// reaches tells whether what a claimant had read is still there in front of its block, and is
// neither too old nor of a time that was wrong.
//
// It is too old, too, if the time rose by more than lateness since then, also where the time went
// back before or after that. Some processes have then forgotten claims that were made since and
// have ended, and others have not. So they would judge such a block differently.
func (b *block) reaches(e Entry, s *shardState, now, late int64) bool {
	seen := b.seen
	if seen.Epoch < 0 { // of an empty shard
		return seen.Next == e.At
	}
	if seen.Epoch != e.Epoch || seen.Next > e.At || now-seen.Time > late {
		return false
	}
	return b.version == firstVersion ||
		seen.Time-now <= late && !s.Rise.exceeds(seen.Next, now, late)
}

// release also removes a claim that has ended: should that be by a wrong time, it would hold again.
func (m *machine) release(tag [tagBytes]byte) error {
	m.key = append(append(m.key[:0], tag[:]...), m.block.id...)
	_, ends, found, err := m.last(m.key, 0)
	if err == nil && found {
		m.index.remove(m.key, ends)
	}
	return err
}

// get returns the claim that holds a key at a time.
func (m *machine) get(key []byte, now int64) (owner held, ends int64, found bool, err error) {
	if owner, ends, found, err = m.last(key, 0); err != nil || !found || ends <= now {
		return held{}, 0, false, err
	}
	return owner, ends, true, nil
}

// last returns the last claim of a key, which may have ended. Claims from before a point of the
// index may be passed over.
func (m *machine) last(
	key []byte, since uint64,
) (owner held, ends int64, found bool, err error) {
	value, ends, err := m.index.get(key, since)
	if err != nil || value == nil {
		return held{}, 0, false, err
	}
	if err := owner.parse(value); err != nil {
		return held{}, 0, false, err
	}
	return owner, ends, true, nil
}
