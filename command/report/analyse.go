package report

import (
	"bytes"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

// analysis is the second pass: all records with an ID, ordered by ID and then by time.
type analysis struct {
	ttl     int64 // configured, milliseconds
	sliding bool  // it counts from the last copy
	collect *collector

	ids            int64
	duplicates     int64 // copies with the content of their ID's first record
	conflicts      int64 // copies with other content
	otherPartition int64 // copies on another partition than the first record
	conflictingIDs int64
	ladder         *ladder
	farthest       int64 // the oldest copy's age, milliseconds
	ages           []int64
	top            topList
	examples       []conflict
	verdicts       map[dedup.Verdict]int64 // with the configured ttl
	group          group
}

// group is the ID that is being read.
type group struct {
	id         []byte
	records    int64
	first      occurrence
	last       int64
	conflicted bool
	owner      occurrence // of the claim that would stand, with the configured ttl
	since      int64      // the ttl of that claim counts from here
}

// conflict is an ID with two contents.
type conflict struct {
	id           dedup.ID
	first, other occurrence
}

const maxConflicts = 10

func newAnalysis(ttl time.Duration, sliding bool, c *collector) *analysis {
	return &analysis{
		ttl: ttl.Milliseconds(), sliding: sliding, collect: c, ladder: newLadder(),
		ages:     make([]int64, len(ageEdges)+1),
		verdicts: make(map[dedup.Verdict]int64),
	}
}

// ageEdges divide the ages of copies for people, in milliseconds.
var ageEdges = []int64{
	1_000, 10_000, 60_000, 600_000, 3_600_000, 6 * 3_600_000, day, 3 * day, 7 * day, 30 * day,
}

func (a *analysis) add(e entry) {
	id, o := e.id(), e.occurrence()
	if a.group.records == 0 || !bytes.Equal(id, a.group.id) {
		a.endGroup()
		a.beginGroup(id, o)
		return
	}
	a.group.records++
	a.addCopy(o)
	a.group.last = o.at
}

func (a *analysis) beginGroup(id []byte, o occurrence) {
	a.ids++
	a.group = group{id: append(a.group.id[:0], id...), records: 1, first: o, last: o.at, owner: o,
		since: o.at}
	a.ladder.begin()
	a.verdicts[dedup.VerdictFirst]++
}

// endGroup is called once more after the last record.
func (a *analysis) endGroup() {
	if g := a.group; g.records > 1 {
		a.top.add(g.id, g.records, g.first.at, g.last)
	}
}

func (a *analysis) addCopy(o occurrence) {
	first := a.group.first
	age := o.at - first.at
	a.climb(o)
	a.farthest = max(a.farthest, age)
	a.ages[ageRow(age)]++
	a.collect.series.add(o.at, 0, 1)
	if o.partition != first.partition {
		a.otherPartition++
	}
	conflicts := o.fingerprint != first.fingerprint
	a.count(o, conflicts)
	if conflicts && !a.group.conflicted {
		a.group.conflicted = true
		a.conflictingIDs++
		if len(a.examples) < maxConflicts {
			a.examples = append(a.examples, conflict{dedup.ID(a.group.id), first, o})
		}
	}
	a.verdicts[a.verdict(o)]++
}

// climb asks all ttls about a copy. A sliding one catches what comes within it after the record
// before.
func (a *analysis) climb(o occurrence) {
	from := a.group.first.at
	if a.sliding {
		a.ladder.begin()
		from = a.group.last
	}
	a.ladder.add(from, o.at)
}

// count adds a copy to the totals, its partition and its header value.
func (a *analysis) count(o occurrence, conflicts bool) {
	tallies := []*tally{a.collect.partitions[o.partition]}
	if a.collect.headers != nil {
		tallies = append(tallies, a.collect.headers.tallies[o.header])
	}
	if conflicts {
		a.conflicts++
	} else {
		a.duplicates++
	}
	for _, t := range tallies {
		if conflicts {
			t.conflicts++
		} else {
			t.duplicates++
		}
	}
}

// verdict plays the store with the configured ttl.
func (a *analysis) verdict(o occurrence) dedup.Verdict {
	owner, age := &a.group.owner, o.at-a.group.since
	if a.sliding && age >= a.ttl-a.renewedAt() {
		a.group.since = o.at
	}
	switch {
	case age >= a.ttl:
		*owner, a.group.since = o, o.at
		return dedup.VerdictFirst
	case o.fingerprint == owner.fingerprint:
		return dedup.VerdictDuplicate
	default:
		return dedup.VerdictConflict
	}
}

// renewedAt is how much of its life a claim has left when a copy renews it.
func (a *analysis) renewedAt() int64 {
	scope := dedup.Scope{TTL: time.Duration(a.ttl) * time.Millisecond}
	return scope.DueAt().Milliseconds()
}

func (a *analysis) copies() int64 { return a.duplicates + a.conflicts }

func ageRow(age int64) int {
	for i, edge := range ageEdges {
		if age < edge {
			return i
		}
	}
	return len(ageEdges)
}
