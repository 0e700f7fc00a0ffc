package proposal

import (
	"cmp"
	"slices"

	"github.com/kdedup/kdedup/command/report"
)

const (
	mostParts = 16 // that are tried with each other
	mostShown = 3  // pairs that are proposed
)

// pairs proposes two places together where none is an ID alone: a tenant and a number, say. Two
// arbitrary fields tell many messages apart by chance, so the names must speak for it, too.
func (j *judge) pairs() (found []*Candidate) {
	parts := j.parts()
	for i, one := range parts {
		for _, other := range parts[i+1:] {
			if c := j.pair(one, other); c != nil {
				found = append(found, c)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b *Candidate) int {
		return cmp.Or(cmp.Compare(b.Same, a.Same), byScore(a, b))
	})
	return found[:min(len(found), mostShown)]
}

// parts are the places that may be a half of an ID.
func (j *judge) parts() (parts []*Candidate) {
	for _, c := range j.all {
		isID, _ := c.name.isID(j.topic)
		named := isID || c.name.isForeign() || c.name.isSequence() || c.Places[0].From == "key"
		if named && !c.never && !c.name.isAttempt() && c.Refused != "" {
			parts = append(parts, c)
		}
	}
	slices.SortStableFunc(parts, func(a, b *Candidate) int {
		return cmp.Or(cmp.Compare(b.Distinct, a.Distinct), byScore(a, b))
	})
	return parts[:min(len(parts), mostParts)]
}

// pair is nil if the two are no ID together. One of them must count what the other one has.
func (j *judge) pair(one, other *Candidate) *Candidate {
	if !other.counts() {
		one, other = other, one
	}
	if !other.counts() || one.counts() && one.name.isSequence() {
		return nil
	}
	c := &Candidate{Places: []Place{one.Places[0], other.Places[0]}, Of: max(one.Of, other.Of),
		Kind: report.KindOther, ids: make([]uint64, len(one.ids))}
	for i := range c.ids {
		if one.ids[i] != 0 && other.ids[i] != 0 {
			c.ids[i] = (one.ids[i]*31 + other.ids[i]) | 1
		}
	}
	c.set(count(c.ids, j.content))
	if c.Other > 0 && c.spread() >= telling {
		j.look(c)
	}
	copiesSeen := j.contents.same >= fewCopies && 10*c.Same < 8*j.contents.same
	if share(c.Have, c.Of) < enough || c.spread() < telling || copiesSeen ||
		c.Other > 1 && share(c.Other, c.Have) > conflicting/5 {
		return nil
	}
	c.rate(j.topic, 0)
	return c
}

// counts reports whether the place has numbers, or is called as what has them.
func (c *Candidate) counts() bool { return c.name.isSequence() || c.Kind == report.KindNumber }
