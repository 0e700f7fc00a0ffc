package storetest

import (
	"testing"
	"time"

	"github.com/kdedup/kdedup/idempotency"
)

var lifetimeBehaviours = []behaviour{
	{"a record ends with its ttl", expiry},
	{"each swap begins the ttl again", extension},
	{"a short ttl ends what had a long one", shortening},
}

const briefly = 2 * time.Second

func expiry(t *testing.T, s *subject) {
	key, first := newKey(), completed(started(), "receipt")
	begin := time.Now()
	s.mustSwap(t, key, none, first, briefly)
	s.wantEnd(t, key, begin)
	s.mustRefuse(t, key, first.Version, completed(first, "late"), nobody)
	second := started()
	s.mustSwap(t, key, none, second, time.Hour)
	s.wantGet(t, key, second)
}

// wantEnd waits for the end of a record that was to live briefly.
func (s *subject) wantEnd(t *testing.T, key idempotency.Key, begin time.Time) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for s.get(t, key).Version != none {
		if time.Since(begin) > briefly+s.features.ExpiryGranularity+patience {
			t.Fatal("the record did not end")
		}
		<-tick.C
	}
	if lived := time.Since(begin); lived < briefly {
		t.Errorf("the record ended after %v, want %v at least", lived, briefly)
	}
}

// extension proves itself by a second record, stored before the first, that ends meanwhile.
func extension(t *testing.T, s *subject) {
	key, watch, first := newKey(), newKey(), started()
	s.mustSwap(t, key, none, first, briefly)
	last := completed(first, "receipt")
	s.mustSwap(t, key, first.Version, last, time.Hour)
	begin := time.Now()
	s.mustSwap(t, watch, none, started(), briefly)
	s.wantEnd(t, watch, begin)
	s.mustRefuse(t, key, none, started(), last)
}

func shortening(t *testing.T, s *subject) {
	key, first := newKey(), started()
	s.mustSwap(t, key, none, first, time.Hour)
	begin := time.Now()
	s.mustSwap(t, key, first.Version, completed(first, "receipt"), briefly)
	s.wantEnd(t, key, begin)
	s.mustSwap(t, key, none, started(), time.Hour)
}
