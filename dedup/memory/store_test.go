package memory_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/memory"
	"github.com/kdedup/kdedup/dedup/storetest"
)

// faulty is a store whose next Claim can be spoiled once.
type faulty struct {
	*memory.Store
	next atomic.Pointer[memory.Fault]
}

func newFaulty(t *testing.T) *faulty {
	f := &faulty{}
	f.Store = memory.New(memory.Options{
		Violation: t.Errorf,
		Faults: func([]dedup.Claim) memory.Fault {
			if fault := f.next.Swap(nil); fault != nil {
				return *fault
			}
			return memory.Fault{}
		},
	})
	return f
}

func (f *faulty) spoil(fault memory.Fault) { f.next.Store(&fault) }

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) dedup.Store {
		store := newFaulty(t)
		t.Cleanup(func() { store.Close() })
		return store
	}, storetest.Features{
		Ambiguous: func(_ *testing.T, store dedup.Store) {
			store.(*faulty).spoil(memory.Ambiguous(errors.New("timeout")))
		},
	})
}

var scope = dedup.Scope{ConsumerGroup: "g", Name: "orders", TTL: time.Minute, Buckets: 1,
	Extractor: "key"}

func claims(ids ...dedup.ID) []dedup.Claim {
	claims := make([]dedup.Claim, len(ids))
	for i, id := range ids {
		claims[i] = dedup.Claim{ID: id, Owner: dedup.Coordinates{Offset: int64(i)}}
	}
	return claims
}

func outcomes(answers []dedup.Answer) []dedup.Outcome {
	var outcomes []dedup.Outcome
	for _, a := range answers {
		outcomes = append(outcomes, a.Outcome)
	}
	return outcomes
}

func TestFaults(t *testing.T) {
	boom := errors.New("boom")
	const u, a, e = dedup.Undecided, dedup.Applied, dedup.Exists
	for _, row := range []struct {
		name         string
		fault        memory.Fault
		wantErr      error
		first, again []dedup.Outcome
	}{
		{"none", memory.Fault{}, nil, []dedup.Outcome{a, a, a}, []dedup.Outcome{e, e, e}},
		{"lost", memory.Lost(boom), boom, []dedup.Outcome{u, u, u}, []dedup.Outcome{a, a, a}},
		{"ambiguous", memory.Ambiguous(boom), boom, []dedup.Outcome{u, u, u},
			[]dedup.Outcome{e, e, e}},
		{"partial", memory.Partial(boom, func(i int) memory.Effect { return memory.Effect(i) }),
			boom,
			[]dedup.Outcome{a, u, u}, []dedup.Outcome{e, a, e}},
		{"without an error", memory.Lost(nil), memory.ErrInjected, []dedup.Outcome{u, u, u},
			[]dedup.Outcome{a, a, a}},
	} {
		t.Run(row.name, func(t *testing.T) {
			store := newFaulty(t)
			store.spoil(row.fault)
			answers, err := store.Claim(t.Context(), scope, claims("1", "2", "3"))
			if !errors.Is(err, row.wantErr) {
				t.Errorf("error %v, want %v", err, row.wantErr)
			}
			if diff := cmp.Diff(row.first, outcomes(answers)); diff != "" {
				t.Errorf("first call (-want +got):\n%s", diff)
			}
			answers, err = store.Claim(t.Context(), scope, claims("1", "2", "3"))
			if diff := cmp.Diff(row.again, outcomes(answers)); diff != "" || err != nil {
				t.Errorf("second call, error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestClaimsExpireByTheInjectedClock(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	store := memory.New(memory.Options{Now: func() time.Time { return now }})
	for _, step := range []struct {
		advance time.Duration
		want    dedup.Outcome
	}{
		{0, dedup.Applied},
		{scope.TTL - time.Millisecond, dedup.Exists},
		{time.Millisecond, dedup.Applied},
		{time.Second, dedup.Exists},
	} {
		now = now.Add(step.advance)
		answers, err := store.Claim(t.Context(), scope, claims("1"))
		if err != nil || answers[0].Outcome != step.want {
			t.Fatalf("at %v: %+v, %v, want outcome %v", now, answers, err, step.want)
		}
	}
}

func TestImpossibleCallsAreReported(t *testing.T) {
	brief := scope
	brief.TTL = 1500 * time.Millisecond
	for _, row := range []struct {
		name string
		call func(ctx context.Context, s *memory.Store)
		want string
	}{
		{"equal ids", func(ctx context.Context, s *memory.Store) {
			s.Claim(ctx, scope, claims("1", "2", "1"))
		}, "claimed twice"},
		{"empty id", func(ctx context.Context, s *memory.Store) { s.Claim(ctx, scope, claims("")) },
			"empty id"},
		{"fraction of a second", func(ctx context.Context, s *memory.Store) {
			s.Claim(ctx, brief, claims("1"))
		}, "whole seconds"},
		{"use after close", func(ctx context.Context, s *memory.Store) {
			s.Close()
			s.Lookup(ctx, scope, "1")
		}, "after Close"},
		{"close twice", func(_ context.Context, s *memory.Store) { s.Close(); s.Close() },
			"closed twice"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var got []string
			s := memory.New(memory.Options{Violation: func(format string, args ...any) {
				got = append(got, fmt.Sprintf(format, args...))
			}})
			row.call(t.Context(), s)
			if len(got) != 1 || !strings.Contains(got[0], row.want) {
				t.Errorf("violations %q, want one with %q", got, row.want)
			}
		})
	}
}
