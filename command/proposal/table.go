package proposal

import (
	"cmp"
	"context"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
)

// table is what stands in each place of each record.
type table struct {
	topic   string
	now     time.Time
	records []*kgo.Record
	content []dedup.Fingerprint // key and value, by record
	columns []*column
	alive   int // records that are no tombstones
	// views are the records with what schemas read of them as documents, and the records themselves
	// without schemas.
	views   []*kgo.Record
	schemas *Schemas // nil: none
	seed    maphash.Seed
}

// column is one place. A zero in ids is a record that has no ID there.
type column struct {
	place    Place
	ids      []uint64
	examples []example
}

// example is one of the different values of a column.
type example struct {
	text string
	at   time.Time // of its record
}

const (
	mostLooked   = 2000   // records in which places are looked for
	mostPlaces   = 200    // that are compared: those on the most records
	mostNames    = 20_000 // that are counted, of objects with an ID for the name of each field
	mostExamples = 200
)

func newTable(s Sample, now time.Time, finders []Finder) *table {
	t := &table{topic: s.Topic, now: now, records: s.Records, seed: maphash.MakeSeed(),
		views: s.views(), schemas: s.Schemas}
	fingerprints := messageid.NewFingerprinter()
	for _, r := range t.records {
		t.content = append(t.content, fingerprints.Of(r))
		if !messageid.IsTombstone(r.Value) {
			t.alive++
		}
	}
	for _, place := range t.places(finders) {
		if c := t.column(place); c != nil {
			t.columns = append(t.columns, c)
		}
	}
	return t
}

// places are those of the sample, the ones on the most records first.
func (t *table) places(finders []Finder) []Place {
	seen := make(map[Place]int)
	stride := max(1, len(t.records)/mostLooked)
	for i := 0; i < len(t.records); i += stride {
		for _, f := range finders {
			f.Find(t.records[i], func(p Place) {
				if _, known := seen[p]; known || len(seen) < mostNames {
					seen[p]++
				}
			})
		}
		for _, f := range t.schemas.fields() {
			f.Find(t.views[i], func(p Place) { seen[p]++ })
		}
	}
	all := slices.SortedFunc(maps.Keys(seen), func(a, b Place) int {
		return cmp.Or(cmp.Compare(seen[b], seen[a]), strings.Compare(a.String(), b.String()))
	})
	return all[:min(len(all), mostPlaces)]
}

// column is nil for a place that no extractor takes.
func (t *table) column(p Place) *column {
	extractor, err := messageid.New(t.source(p))
	if err == nil {
		err = extractor.Resolve(context.Background(), t.records) // from memory
	}
	if err != nil {
		return nil
	}
	c := &column{place: p, ids: make([]uint64, len(t.records))}
	known := make(map[uint64]bool)
	for i, r := range t.records {
		id, missing := extractor.Extract(r)
		if missing != dedup.NotMissing {
			continue
		}
		c.ids[i] = maphash.String(t.seed, string(id)) | 1
		if len(c.examples) < mostExamples && !known[c.ids[i]] {
			known[c.ids[i]] = true
			c.examples = append(c.examples, example{string(id), r.Timestamp})
		}
	}
	return c
}

// source is the place for an extractor that has the schemas.
func (t *table) source(p Place) messageid.Source {
	s := p.Source()
	if t.schemas != nil {
		s.Registry = t.schemas
	}
	return s
}

// tally counts records by their IDs.
type tally struct {
	have     int // records with an ID
	distinct int
	same     int // copies with the content of the first record of their ID
	other    int // with other content
}

func (n tally) copies() int { return n.same + n.other }

func count(ids []uint64, content []dedup.Fingerprint) (n tally) {
	first := make(map[uint64]int, len(ids))
	for i, id := range ids {
		if id == 0 {
			continue
		}
		n.have++
		at, known := first[id]
		switch {
		case !known:
			first[id] = i
		case content[i] == content[at]:
			n.same++
		default:
			n.other++
		}
	}
	n.distinct = len(first)
	return n
}

// contents counts the sample as if its contents were its IDs.
func (t *table) contents() tally {
	n := tally{have: len(t.content)}
	known := make(map[dedup.Fingerprint]bool, len(t.content))
	for _, c := range t.content {
		known[c] = true
	}
	n.distinct = len(known)
	n.same = n.have - n.distinct
	return n
}
