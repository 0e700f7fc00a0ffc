package idempotency

import (
	"fmt"
	"testing"
)

func TestSightingsAreBounded(t *testing.T) {
	s := newSightings()
	for n := range maxSightings + 100 {
		s.unchanged(Key{ID: fmt.Sprint(n)}, Version{Revision: 1})
	}
	if len(s.seen) != maxSightings {
		t.Errorf("%d sightings, want %d", len(s.seen), maxSightings)
	}
	if s.forget(Key{ID: fmt.Sprint(maxSightings + 99)}); len(s.seen) != maxSightings-1 {
		t.Errorf("%d sightings after the latest was forgotten", len(s.seen))
	}
}
