package report

import (
	"cmp"
	"slices"

	"github.com/kdedup/kdedup/dedup"
)

// repeated is an ID with its records.
type repeated struct {
	id          dedup.ID
	records     int64
	first, last int64 // log times
}

// topList keeps the IDs with the most records.
type topList struct{ ids []repeated }

const maxTopIDs = 20

// add takes an ID whose bytes belong to the caller.
func (t *topList) add(id []byte, records, first, last int64) {
	full := len(t.ids) == maxTopIDs
	if full && records <= t.ids[maxTopIDs-1].records {
		return
	}
	if full {
		t.ids = t.ids[:maxTopIDs-1]
	}
	at, _ := slices.BinarySearchFunc(t.ids, records, func(r repeated, n int64) int {
		if r.records == n {
			return -1 // behind its equals
		}
		return cmp.Compare(n, r.records)
	})
	t.ids = slices.Insert(t.ids, at, repeated{dedup.ID(id), records, first, last})
}
