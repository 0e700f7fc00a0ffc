package proposal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kdedup/kdedup/command/report"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
)

// Judgement is what a sample says about message IDs.
type Judgement struct {
	Tombstones int // of the sample
	// Choices may be the message ID, the most likely one first. The last resort, the hash of the
	// value, is among them where values tell messages apart.
	Choices []*Candidate
	// Refused are not the message ID. Those that look most like one are first.
	Refused []*Candidate
	// Registry says what a schema registry has to do with the values, and is empty if nothing.
	Registry string

	table *table
}

// Judge compares the places of a sample. Nil finders are all that there are.
func Judge(s Sample, now time.Time, finders []Finder) Judgement {
	if finders == nil {
		finders = Finders()
	}
	t := newTable(s, now, finders)
	j := &judge{table: t, contents: t.contents()}
	if !s.Schemas.readsValues() {
		j.registry = serialized(s.Records, aValue).remedy()
	}
	for _, c := range t.columns {
		j.all = append(j.all, t.candidate(c))
	}
	j.doubtKey()
	j.refuseAttempts()
	j.addHash()
	if flat := flattened(t.views); flat != "" {
		j.refuseRows(flat)
	}
	j.refuseForgotten()
	return j.judgement()
}

// Of counts a place that somebody names, whether it was found or not.
func (j Judgement) Of(p Place) (*Candidate, error) {
	if _, err := messageid.New(p.Source()); err != nil {
		return nil, err
	}
	if p.behindSchema() && p.From != messageid.FromJSONSchema && j.table.schemas == nil {
		return nil, fmt.Errorf("the %s needs the schemas of the values: name their registry by "+
			"--registry", p)
	}
	c := j.table.candidate(j.table.column(p))
	if p == keyPlace {
		c.Doubt = j.table.keyDoubt()
	}
	if p.From == hashPlace.From && j.Registry != "" {
		c.Doubt = "Mind: " + j.Registry + "."
	}
	return c, nil
}

// Refuse takes those of the choices away that read fields by the schemas of values, and for which
// somebody has an error: the newest schema lacks the field, say.
func (j *Judgement) Refuse(wrong func(*Candidate) error) {
	j.Choices = slices.DeleteFunc(j.Choices, func(c *Candidate) bool {
		if !slices.ContainsFunc(c.Places, Place.behindSchema) && len(c.Ignore) == 0 {
			return false
		}
		err := wrong(c)
		if err != nil {
			c.Refused = err.Error()
			j.Refused = append([]*Candidate{c}, j.Refused...)
		}
		return err != nil
	})
}

// hashPlace is the last resort.
var hashPlace = Place{From: "value_hash"}

// keyPlace is the key as it is.
var keyPlace = Place{From: "key"}

// doubtKey tells what counts with a key that stands behind what names its schema.
func (j *judge) doubtKey() {
	for _, c := range j.all {
		if c.Places[0] == keyPlace && c.Refused == "" {
			c.Doubt = j.keyDoubt()
		}
	}
}

// keyDoubt is empty for keys that do not stand behind what names their schemas.
func (t *table) keyDoubt() string {
	seen := serialized(t.records, aKey)
	if !seen.before {
		return ""
	}
	doubt := report.Capital(seen.Seen()) + ". That counts with it: a copy under another version of the " +
		"key's schema, or in another framing, has another ID."
	if t.schemas == nil || t.schemas.ofKeys == "" {
		doubt += " With --registry, kdedup init looks for the ID within the key."
	}
	return doubt
}

type judge struct {
	*table
	contents tally // of the records
	registry string
	all      []*Candidate
}

const (
	// fewCopies may be chance.
	fewCopies = 3
	// diverse contents tell messages apart well enough that equal ones are copies, even if no field
	// says so.
	diverse = 0.7
	// telling contents do so where a field says the same.
	telling = 0.25
)

// open are the candidates that nothing speaks against, the most likely ones first.
func (j *judge) open() []*Candidate {
	most := 0
	for _, c := range j.all {
		if c.Refused == "" && c.spread() >= telling {
			most = max(most, c.Same)
		}
	}
	var open []*Candidate
	for _, c := range j.all {
		if c.Refused == "" {
			c.rate(j.topic, most)
			open = append(open, c)
		}
	}
	slices.SortStableFunc(open, byScore)
	return open
}

func byScore(a, b *Candidate) int {
	return cmp.Or(cmp.Compare(b.score, a.score), strings.Compare(a.String(), b.String()))
}

// refuseAttempts refuses what is another value on each copy of a message: it names the sending.
func (j *judge) refuseAttempts() {
	witness := j.witness()
	if witness == nil {
		pairs := j.pairs()
		if len(pairs) > 0 && pairs[0].Same >= fewCopies {
			witness = pairs[0]
		} else {
			j.refuseByContents()
		}
		if witness != nil || len(j.open()) == 0 {
			j.all = append(j.all, pairs...)
		}
	}
	if witness == nil {
		return
	}
	for _, c := range j.all {
		if c == witness || c.Refused != "" || len(c.Places) > 1 {
			continue
		}
		copies, differing := j.compare(witness.ids, c.ids)
		if copies >= fewCopies && 10*differing >= 9*copies && 10*c.Same <= witness.Same {
			j.refuseAttempt(c, len(witness.Places) == 1, plural(differing, "copy", "copies")+
				" of one "+witness.String())
		}
	}
}

// refuseAttempt refuses a candidate that differs on copies, or on what seem to be copies: then a
// place with a name such as message-id is believed, with a doubt.
func (j *judge) refuseAttempt(c *Candidate, sure bool, copies string) {
	_, whole := c.name.isID(j.topic)
	if !sure && whole && !c.name.isForeign() && !c.name.isAttempt() {
		c.Doubt = "The " + c.String() + " differs on " + copies + ". If these are copies, it " +
			"names the sending, and not the message."
		return
	}
	c.Refused = "it differs on " + copies + ": it names the sending, not the message"
	c.never = true
}

// witness is the place that finds the most copies, if they are enough to believe it.
func (j *judge) witness() (found *Candidate) {
	for _, c := range j.open() {
		if c.Same >= fewCopies && c.spread() >= telling && 10*c.Same >= 8*j.contents.same &&
			(found == nil || c.Same > found.Same) {
			found = c
		}
	}
	return found
}

// compare counts the copies by one kind of ID, and those of them that have another one of the other
// kind than the first record.
func (j *judge) compare(ids, others []uint64) (copies, differing int) {
	first := make(map[uint64]int, len(ids))
	for i, id := range ids {
		at, known := first[id]
		if id == 0 || !known {
			first[id] = i
			continue
		}
		if others[i] != 0 && others[at] != 0 {
			copies++
			if others[i] != others[at] {
				differing++
			}
		}
	}
	return copies, differing
}

// refuseByContents goes by whole contents. Equal ones are copies only where contents are diverse.
func (j *judge) refuseByContents() {
	if j.contents.same < fewCopies || share(j.contents.distinct, j.contents.have) < diverse {
		return
	}
	contents := make([]uint64, len(j.content))
	first := make(map[dedup.Fingerprint]uint64, len(j.content))
	for i, c := range j.content {
		if first[c] == 0 {
			first[c] = uint64(i) + 1
		}
		contents[i] = first[c]
	}
	for _, c := range j.all {
		copies, differing := j.compare(contents, c.ids)
		if c.Refused == "" && copies >= fewCopies && 10*differing >= 9*copies {
			j.refuseAttempt(c, false, plural(differing, "record", "records")+
				" with the key and the value of an earlier one")
		}
	}
}

// addHash adds the last resort.
func (j *judge) addHash() {
	place := hashPlace
	column := j.column(place)
	if column == nil || j.alive == 0 {
		return
	}
	c := &Candidate{Places: []Place{place}, Of: j.alive, ids: column.ids,
		Doubt: "With it, equal values count as copies: of messages that are equal, and no copies, " +
			"only the first is forwarded."}
	c.set(count(c.ids, j.content))
	if n := j.returns(column.ids); n > 0 {
		c.Doubt += " " + plural(n, "record has", "records have") + " the value that an earlier " +
			"one of its key had, with another value between them: if that is a state to which " +
			"something came back, it is lost."
	}
	if j.schemas.readsValues() && serialized(j.records, aValue).before {
		c.Doubt += " What names the schema counts with it: a copy under another version of the " +
			"schema, or in another framing, is a new message."
	}
	if j.registry != "" {
		c.Refused = j.registry
	} else if c.spread() < telling && c.Have > 1 {
		c.Refused = "it has only " + plural(c.Distinct, "different value", "different values") +
			", so equal ones need not be copies"
	}
	j.all = append(j.all, c)
}

// returns counts records with an earlier value of their key that was not the last one.
func (j *judge) returns(ids []uint64) (n int) {
	type valueOf struct {
		key   string
		value uint64
	}
	last, seen := make(map[string]uint64), make(map[valueOf]bool)
	for i, r := range j.records {
		if len(r.Key) == 0 || ids[i] == 0 {
			continue
		}
		at := valueOf{string(r.Key), ids[i]}
		if seen[at] && last[at.key] != at.value {
			n++
		}
		last[at.key], seen[at] = at.value, true
	}
	return n
}

func (j *judge) judgement() Judgement {
	found := Judgement{Tombstones: len(j.records) - j.alive, Choices: j.open(),
		Registry: j.registry, table: j.table}
	for _, c := range j.all {
		if c.Refused != "" {
			c.rate(j.topic, 0)
			found.Refused = append(found.Refused, c)
		}
	}
	slices.SortStableFunc(found.Refused, byScore)
	doubtHoles(found.Choices)
	return found
}

// doubtHoles says of each choice that records lack what becomes of these, and which other place is
// on all records.
func doubtHoles(choices []*Candidate) {
	whole := slices.IndexFunc(choices, func(c *Candidate) bool {
		return c.Have == c.Of && c.Places[0] != hashPlace
	})
	if whole < 0 {
		return
	}
	for _, c := range choices {
		if c.Have < c.Of && c.Doubt == "" {
			c.Doubt = "Without it " + plural(c.Of-c.Have, "record becomes a dead letter",
				"records become dead letters") + ". The " + choices[whole].String() + " is on all."
		}
	}
}
