package proposal

import (
	"slices"
	"strings"

	"github.com/kdedup/kdedup/command/report"
	"github.com/kdedup/kdedup/dedup/messageid"
)

// Candidate is a place, or several together, that may carry the message ID.
type Candidate struct {
	Places []Place // several are a composite
	// Of that many records the place was looked for: tombstones have no fields.
	Of       int
	Have     int // that carry an ID there
	Distinct int // different IDs
	Same     int // copies, with the content of the first record of their ID
	Other    int // copies with other content
	// Ignore lists the fields in which copies differ that are copies all the same, see
	// fingerprint.ignore. Same counts those copies.
	Ignore []string
	// Trusted says that copies say the same in other bytes, as those of another version of their
	// schema: the ID says all that counts. Same counts them.
	Trusted bool
	Kind    string // of report
	Refused string // why it is no message ID; empty if it may be one
	Doubt   string // what a person should know before taking it; may be empty

	never bool // nor a part of one
	ids   []uint64
	name  name
	score float64
}

// Source is where the candidate says that the ID stands.
func (c *Candidate) Source() messageid.Source {
	if len(c.Places) == 1 {
		return c.Places[0].Source()
	}
	s := messageid.Source{From: "composite"}
	for _, p := range c.Places {
		s.Parts = append(s.Parts, p.Source())
	}
	return s
}

func (c *Candidate) copies() int { return c.Same + c.Other }

// spread is which part of the IDs are different.
func (c *Candidate) spread() float64 { return share(c.Distinct, c.Have) }

func share(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

// candidate counts a column.
func (t *table) candidate(c *column) *Candidate {
	found := &Candidate{Places: []Place{c.place}, Of: len(t.records), Kind: c.kind(t.now),
		ids: c.ids, name: nameOf(c.place)}
	if c.place.ofValue() {
		found.Of = t.alive
	}
	found.set(count(c.ids, t.content))
	if found.Other > 0 && found.spread() > repeating {
		t.look(found)
	}
	found.Refused, found.never = found.refuse(c)
	return found
}

func (c *Candidate) set(n tally) {
	c.Have, c.Distinct, c.Same, c.Other = n.have, n.distinct, n.same, n.other
}

// look finds out whether copies with other content differ only in what a producer writes when it
// sends.
func (t *table) look(c *Candidate) {
	if t.schemas != nil && t.schemas.format == messageid.FromJSONSchema {
		return // fingerprints do not read behind its names
	}
	paths, rekeyed := t.differing(c.ids), t.rekeyed(c.ids)
	if rekeyed {
		paths = nil // a key counts as it is, whatever is left out of the value
	}
	if len(paths) == 0 && !t.schemas.readsValues() && !rekeyed {
		return
	}
	content, err := t.without(paths)
	if err != nil {
		return
	}
	if n := count(c.ids, content); n.same > c.Same && 5*n.same >= 4*n.copies() {
		c.Ignore, c.Trusted = paths, len(paths) == 0
		c.set(n)
	}
}

const (
	// enough records must have a place; those without go to the dead letters.
	enough = 0.5
	// repeating is the spread below which a place names something with many messages.
	repeating = 0.1
	// conflicting is which part of the records may be in conflict.
	conflicting = 0.05
)

// refuse says why a candidate is no message ID, and whether it is not even a part of one.
func (c *Candidate) refuse(of *column) (why string, never bool) {
	switch {
	case share(c.Have, c.Of) < enough:
		return "it is on " + portion(c.Have, c.Of) + " only", true
	case of.isTime():
		return "it is a time: equal ones are equal by chance", true
	case c.Distinct == 1 && c.Have > 1:
		return "it is the same on all records", true
	case c.Other > 1 && (c.Other > c.Same || share(c.Other, c.Have) > conflicting):
		return plural(c.Other, "record has", "records have") + " the ID of another one and other " +
			"content: it names what several messages are about", false
	case c.spread() < repeating:
		return "it has only " + plural(c.Distinct, "different value", "different values"), false
	case of.isNumber() && !c.named() && !c.Places[0].isKey():
		return "it is a number, and its name does not call it an ID: equal ones may be chance", false
	}
	return "", false
}

// named reports whether people call so what names something.
func (c *Candidate) named() bool {
	is, _ := c.name.isID("")
	return is || c.name.isSequence()
}

// rate makes candidates comparable; most is the largest number of copies that one of them finds.
func (c *Candidate) rate(topic string, most int) {
	c.score = 60*share(c.Have, c.Of) + c.evidence(most) + c.called(topic) + c.formed() + c.placed()
	if c.copies() > 0 {
		c.score -= 60 * share(c.Other, c.copies())
	}
	if c.spread() < 0.25 {
		c.score -= 60
	}
}

// evidence is what the copies say. A few of them may be chance.
func (c *Candidate) evidence(most int) float64 {
	if most == 0 {
		return 0
	}
	return 100 * share(c.Same, most) * min(1, float64(most)/5)
}

func (c *Candidate) called(topic string) (score float64) {
	is, whole := c.name.isID(topic)
	switch {
	case whole:
		score = 25
	case is:
		score = 10
	case c.name.isSequence():
		score = -5
	}
	if c.name.isForeign() {
		score -= 20
	}
	if c.name.isAttempt() {
		score -= 30
	}
	return score - float64(c.name.depth)
}

func (c *Candidate) formed() float64 {
	switch c.Kind {
	case report.KindNumber:
		return 0
	case report.KindOther:
		return 2
	case report.KindHash, report.KindSnowflake, report.KindUUID:
		return 8
	}
	return 10
}

// lastResort is below all others.
const lastResort = -1000

func (c *Candidate) placed() float64 {
	switch p := c.Places[0]; {
	case p.From == "value_hash":
		return lastResort
	case p.From == "header":
		return 6
	case p.Part == messageid.PartKey:
		return 3
	case p.From == "key":
		return 2
	}
	return 4
}

// String is the candidate for people.
func (c *Candidate) String() string {
	names := make([]string, len(c.Places))
	for i, p := range c.Places {
		names[i] = p.String()
	}
	return strings.Join(names, " with ")
}

// OfValue reports whether tombstones lack the ID whatever their producer does.
func (c *Candidate) OfValue() bool {
	return slices.ContainsFunc(c.Places, Place.ofValue)
}
