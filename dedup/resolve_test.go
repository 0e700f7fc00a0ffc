package dedup

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
)

// asking knows the ID of a record once its Resolve has succeeded.
type asking struct {
	firstHeader
	fails int // how often Resolve says that nobody answers
	asked []int
	known bool
}

var errNobody = errors.New("nobody answers")

func (a *asking) Extract(r *kgo.Record) (ID, MissingReason) {
	if !a.known && string(r.Value) == "ask" {
		return "", MissingUnresolved
	}
	return a.firstHeader.Extract(r)
}

func (a *asking) Resolve(_ context.Context, records []*kgo.Record) error {
	a.asked = append(a.asked, len(records))
	if len(a.asked) <= a.fails {
		return errNobody
	}
	a.known = true
	return nil
}

func askingDeduper(a *asking, retry Retry, h *heard) *Deduper {
	return New(Scope{}, claimerFunc(applied), Options{Extractor: a, Retry: retry, Observer: h})
}

// claimerFunc answers every call alike.
type claimerFunc func([]Claim) ([]Answer, error)

func (f claimerFunc) Claim(_ context.Context, _ Scope, claims []Claim) ([]Answer, error) {
	return f(claims)
}

func TestABatchWaitsUntilItsIDsAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, h := &asking{fails: 3}, &heard{}
		got, err := askingDeduper(a, DefaultRetry, h).Judge(t.Context(),
			[]Message{messageAt(1, "a", "ask"), messageAt(2, "b", "B"), messageAt(3, "c", "ask")})
		want := []Verdict{VerdictFirst, VerdictFirst, VerdictFirst}
		if diff := cmp.Diff(want, verdicts(got)); diff != "" || err != nil {
			t.Error(diff, err)
		}
		if diff := cmp.Diff([]int{2, 2, 2, 2}, a.asked); diff != "" {
			t.Errorf("records that were asked about: %s", diff)
		}
		if h.unresolved != 6 || h.waits.Load() {
			t.Errorf("heard of %d unresolved records, waits %v", h.unresolved, h.waits.Load())
		}
	})
}

func TestUnknownIDsPassUnclaimedWhenTheOutageOutlastsTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		retry := DefaultRetry
		retry.GiveUpAfter = 30 * time.Second
		a, start := &asking{fails: 1 << 30}, time.Now()
		got, err := askingDeduper(a, retry, &heard{}).Judge(t.Context(),
			[]Message{messageAt(1, "a", "ask"), messageAt(2, "b", "B")})
		want := []Verdict{VerdictUnclaimed, VerdictFirst}
		if diff := cmp.Diff(want, verdicts(got)); diff != "" || err != nil {
			t.Error(diff, err)
		}
		if waited := time.Since(start); waited < retry.GiveUpAfter {
			t.Errorf("gave up after %v", waited)
		}
	})
}

func TestAWaitForIDsEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errNobody)
		defer cancel()
		h := &heard{}
		got, err := askingDeduper(&asking{fails: 1 << 30}, DefaultRetry, h).Judge(ctx,
			[]Message{messageAt(1, "a", "ask")})
		if got != nil || !errors.Is(err, errNobody) || h.waits.Load() {
			t.Errorf("%v, %v, waits %v", got, err, h.waits.Load())
		}
	})
}
