package storetest

import (
	"bytes"
	"context"
	"math"
	"testing"
	"time"

	"github.com/kdedup/kdedup/idempotency"
)

var (
	none   idempotency.Version
	nobody idempotency.Record
)

var swapBehaviours = []behaviour{
	{"an unknown key has no record", unknownKey},
	{"a first record is stored once", firstRecord},
	{"a record is replaced by who knows its version", knownVersion},
	{"a swap of another version is refused", otherVersion},
	{"a swap of a record that is not there is refused", absentRecord},
	{"a repeated swap is refused by its own record", repeatedSwap},
	{"every field comes back exactly", everyField},
	{"a large response comes back exactly", largeResponse},
	{"records share no memory with the store", noSharedMemory},
	{"a call with an ended context is an error", endedContext},
	{"what was done survives a reopened store", reopened},
}

func unknownKey(t *testing.T, s *subject) { s.wantGet(t, newKey(), nobody) }

func firstRecord(t *testing.T, s *subject) {
	key, first := newKey(), started()
	s.mustSwap(t, key, none, first, time.Hour)
	s.wantGet(t, key, first)
	s.mustRefuse(t, key, none, started(), first)
}

func knownVersion(t *testing.T, s *subject) {
	key, first := newKey(), started()
	s.mustSwap(t, key, none, first, time.Hour)
	renewed := first
	renewed.Revision++
	s.mustSwap(t, key, first.Version, renewed, time.Hour)
	last := completed(renewed, "receipt")
	s.mustSwap(t, key, renewed.Version, last, time.Hour)
	s.wantGet(t, key, last)
	s.mustRefuse(t, key, none, started(), last)
}

func otherVersion(t *testing.T, s *subject) {
	key, first := newKey(), started()
	s.mustSwap(t, key, none, first, time.Hour)
	for name, old := range map[string]idempotency.Version{
		"another owner":             {Owner: started().Owner, Revision: first.Revision},
		"an earlier revision":       {Owner: first.Owner, Revision: first.Revision - 1},
		"a later revision":          {Owner: first.Owner, Revision: first.Revision + 1},
		"no owner":                  {Revision: first.Revision},
		"a revision with all bytes": {Owner: first.Owner, Revision: math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			s.mustRefuse(t, key, old, completed(first, "mine"), first)
		})
	}
}

func absentRecord(t *testing.T, s *subject) {
	first := started()
	s.mustRefuse(t, newKey(), first.Version, completed(first, "mine"), nobody)
}

func repeatedSwap(t *testing.T, s *subject) {
	key, first := newKey(), started()
	s.mustSwap(t, key, none, first, time.Hour)
	current, done, err := s.Swap(t.Context(), key, none, first, time.Hour)
	if err != nil || done {
		t.Fatalf("repeated swap: %v, done %t", err, done)
	}
	wantRecord(t, "the record that stood in the way", current, first)
}

func everyField(t *testing.T, s *subject) {
	var ones idempotency.Owner
	for i := range ones {
		ones[i] = 0xff
	}
	for _, row := range []struct {
		name   string
		record idempotency.Record
	}{
		{"least", idempotency.Record{Version: idempotency.Version{Revision: 1},
			State: idempotency.Started}},
		{"most", idempotency.Record{
			Version: idempotency.Version{Owner: ones, Revision: math.MaxInt64 - 1},
			State:   idempotency.Released,
			Token:   math.MaxInt64, Lease: 365 * 24 * time.Hour,
			Request: idempotency.Hash(bytes.Repeat([]byte{0xff}, 32)),
		}},
		{"binary response", completed(started(), "\x00\xff\xfe receipt \r\n\x00")},
		{"failure", idempotency.Record{
			Version: idempotency.Version{Owner: ones, Revision: 7}, State: idempotency.Failed,
			Token: -1,
			Lease: time.Millisecond, Response: []byte("declined: „zu wenig“"),
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			key := newKey()
			s.mustSwap(t, key, none, row.record, time.Hour)
			s.wantGet(t, key, row.record)
			next := row.record
			next.Revision++
			next.Response = []byte("next")
			s.mustSwap(t, key, row.record.Version, next, time.Hour)
			s.wantGet(t, key, next)
		})
	}
}

func largeResponse(t *testing.T, s *subject) {
	key, first := newKey(), started()
	s.mustSwap(t, key, none, first, time.Hour)
	last := completed(first, string(bytes.Repeat([]byte{0, 1, 0xff, '\''}, 1<<18)))
	s.mustSwap(t, key, first.Version, last, time.Hour)
	s.mustRefuse(t, key, none, started(), last)
}

func noSharedMemory(t *testing.T, s *subject) {
	key, first := newKey(), completed(started(), "receipt")
	given := first
	given.Response = bytes.Clone(first.Response)
	s.mustSwap(t, key, none, given, time.Hour)
	given.Response[0] = 'X'
	s.wantGet(t, key, first)
	s.get(t, key).Response[0] = 'X'
	s.wantGet(t, key, first)
	current, _, err := s.Swap(t.Context(), key, none, started(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	current.Response[0] = 'X'
	s.wantGet(t, key, first)
}

func endedContext(t *testing.T, s *subject) {
	key, first := newKey(), started()
	s.mustSwap(t, key, none, first, time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Get(ctx, key); err == nil {
		t.Error("get: no error")
	}
	if _, done, err := s.Swap(
		ctx, key, first.Version, completed(first, "mine"), time.Hour,
	); err == nil || done {
		t.Errorf("swap: %v, done %t", err, done)
	}
}

func reopened(t *testing.T, s *subject) {
	if s.features.Reopen == nil {
		t.Skip("the store is not durable, or is not told how to reopen")
	}
	key, first := newKey(), started()
	s.mustSwap(t, key, none, first, time.Hour)
	last := completed(first, "receipt")
	s.mustSwap(t, key, first.Version, last, time.Hour)
	s.Store = s.features.Reopen(t, s.Store)
	s.wantGet(t, key, last)
	s.mustRefuse(t, key, none, started(), last)
}
