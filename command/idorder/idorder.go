// Package idorder finds out whether the order of message IDs is that of time, as with UUIDv7, ULID
// or snowflake IDs. Stores that keep IDs in order find such ones faster.
package idorder

import "cmp"

// Sampled is an ID and when its record was produced.
type Sampled struct {
	ID string
	At int64 // in any unit
}

// Compare looks at every pair of the sample that differs in both ID and time, and counts those that
// have the same order in both. With random IDs it is half of the pairs; it is nearly all where the
// order of the IDs is that of time, but for what producers and partitions lag behind each other.
func Compare(sample []Sampled) (same, pairs int64) {
	for i, a := range sample {
		for _, b := range sample[:i] {
			byTime, byID := cmp.Compare(a.At, b.At), cmp.Compare(a.ID, b.ID)
			if byTime == 0 || byID == 0 {
				continue
			}
			pairs++
			if byTime == byID {
				same++
			}
		}
	}
	return same, pairs
}
