package storetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kdedup/kdedup/idempotency"
)

// patience is for servers on busy machines.
const patience = time.Minute

// newKey is used by no other test.
func newKey() idempotency.Key {
	return idempotency.Key{Namespace: "storetest", ID: rand.Text()}
}

// started is a first record, of a new owner.
func started() idempotency.Record {
	r := idempotency.Record{
		State: idempotency.Started, Token: 1_763_742_465_123, Lease: 1500 * time.Millisecond,
		Request: idempotency.HashOf([]byte(rand.Text())),
	}
	r.Revision = 1
	_, _ = rand.Read(r.Owner[:])
	return r
}

// completed follows a record, by the same owner.
func completed(r idempotency.Record, response string) idempotency.Record {
	r.Revision++
	r.State, r.Response = idempotency.Completed, []byte(response)
	return r
}

// step is a call of Swap that is insisted on, as the contract says. done is true also if an earlier
// attempt was done that the store reported as failed.
func (s *subject) step(
	ctx context.Context, key idempotency.Key, old idempotency.Version, next idempotency.Record,
	ttl time.Duration,
) (current idempotency.Record, done bool, err error) {
	for range 20 {
		current, done, err = s.Swap(ctx, key, old, next, ttl)
		if err == nil {
			return current, done || current.Version == next.Version, nil
		}
	}
	return current, false, err
}

func (s *subject) mustSwap(
	t *testing.T, key idempotency.Key, old idempotency.Version, next idempotency.Record,
	ttl time.Duration,
) {
	t.Helper()
	current, done, err := s.step(t.Context(), key, old, next, ttl)
	if err != nil || !done {
		t.Fatalf("swap of %v: %v, done %t, %+v stands", old, err, done, current)
	}
}

func (s *subject) mustRefuse(
	t *testing.T, key idempotency.Key, old idempotency.Version, next, want idempotency.Record,
) {
	t.Helper()
	current, done, err := s.step(t.Context(), key, old, next, time.Hour)
	if err != nil || done {
		t.Fatalf("swap of %v: %v, done %t, want a refusal", old, err, done)
	}
	wantRecord(t, "the record that stood in the way", current, want)
	s.wantGet(t, key, want)
}

func (s *subject) get(t *testing.T, key idempotency.Key) idempotency.Record {
	t.Helper()
	record, err := s.Get(t.Context(), key)
	for n := 0; err != nil && n < 5; n++ {
		record, err = s.Get(t.Context(), key)
	}
	if err != nil {
		t.Fatal(err)
	}
	return record
}

func (s *subject) wantGet(t *testing.T, key idempotency.Key, want idempotency.Record) {
	t.Helper()
	wantRecord(t, "the stored record", s.get(t, key), want)
}

func wantRecord(t *testing.T, what string, got, want idempotency.Record) {
	t.Helper()
	if !bytes.Equal(got.Response, want.Response) {
		t.Fatalf("%s: response %.80q of %d bytes, want %.80q of %d", what, got.Response,
			len(got.Response), want.Response, len(want.Response))
	}
	got.Response, want.Response = nil, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}
