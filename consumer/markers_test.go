package consumer

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/fence"
)

// coordinator is a client of one partition with a record for each poll, which notes what its
// session does.
type coordinator struct {
	TransactionalClient
	marked []bool // answers, one after the other; the last one is given again and again
	failed error
	lost   error // of Begin
	did    []string
	polls  int64
}

func (c *coordinator) Marked(context.Context) (bool, error) {
	answer := c.marked[0]
	if len(c.marked) > 1 {
		c.marked = c.marked[1:]
	}
	c.did = append(c.did, map[bool]string{true: "marked", false: "not marked"}[answer])
	return answer, c.failed
}

func (c *coordinator) Poll(context.Context, int) kgo.Fetches {
	c.polls++
	return fetched(0, c.polls-1, 1, c.polls)
}

func (c *coordinator) Begin(context.Context) error { return c.lost }
func (c *coordinator) AddOffsets(context.Context, [16]byte, Offsets) error {
	c.did = append(c.did, "offsets")
	return nil
}
func (c *coordinator) Produce(_ context.Context, r *kgo.Record, promise func(*kgo.Record, error)) {
	promise(r, nil)
}
func (c *coordinator) Flush(context.Context) error     { return nil }
func (c *coordinator) End(context.Context, bool) error { c.did = append(c.did, "end"); return nil }
func (c *coordinator) Seek(Offsets)                    {}
func (c *coordinator) Committed() Offsets              { return nil }
func (c *coordinator) Close()                          {}
func (c *coordinator) Narrow(context.Context, []int32) (map[int32]string, error) {
	return nil, nil
}
func (c *coordinator) Fences(context.Context, []int32) (fence.Found, error) {
	return fence.Found{}, nil
}

func (c *coordinator) session(t *testing.T) *Transactional {
	t.Helper()
	opts := memberOf(t, 0).opts
	opts.Limit, opts.TransactionTimeout = NewBatchLimit(1, 1, time.Minute, nil), time.Minute
	session, err := NewTransactional(opts, func(e Events) (TransactionalClient, error) {
		e.Assigned([]int32{0})
		return c, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return session
}

func TestTheEndOfATransactionIsWatchedUntilItsMarkersAreWritten(t *testing.T) {
	for name, row := range map[string]struct {
		ago    time.Duration
		marked []bool
		failed error
		asked  func(times int) bool
	}{
		"they are there":    {0, []bool{true}, nil, exactly(1)},
		"they come later":   {0, []bool{false, false, true}, nil, exactly(3)},
		"they never come":   {0, []bool{false}, nil, func(times int) bool { return times > 1 }},
		"not for this user": {0, []bool{true}, errors.New("not authorized"), exactly(1)},
		"it was long ago":   {time.Minute, []bool{false}, nil, exactly(0)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &coordinator{marked: row.marked, failed: row.failed}
				session := c.session(t)
				defer session.Close()
				session.decided = time.Now().Add(-row.ago)
				session.awaitMarkers()
				if !row.asked(len(c.did)) {
					t.Errorf("asked %d times", len(c.did))
				}
			})
		})
	}
}

func exactly(n int) func(int) bool { return func(times int) bool { return times == n } }

// A broker that has to write before the markers are there tries again after 20 ms.
func TestATransactionBeginsWhenTheMarkersOfTheOneBeforeAreWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &coordinator{marked: []bool{false, false, true}}
		session := c.session(t)
		defer session.Close()
		for range 2 {
			b, err := session.Poll(t.Context())
			if err == nil {
				err = session.Begin(t.Context(), b)
			}
			if err == nil {
				err = session.Commit(t.Context(), b)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		want := []string{"offsets", "end", "not marked", "not marked", "marked", "offsets", "end"}
		if !slices.Equal(c.did, want) {
			t.Errorf("got %q, want %q", c.did, want)
		}
	})
}

// Its next transaction, also one that is aborted, would decide over what the last one left open.
func TestASessionEndsNoTransactionBehindLostMarkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &coordinator{marked: []bool{true}, lost: ErrMarkersLost}
		session := c.session(t)
		defer session.Close()
		b, err := session.Poll(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		err = session.Begin(t.Context(), b)
		if !errors.Is(err, ErrMarkersLost) {
			t.Errorf("got %v", err)
		}
		if err = session.Abort(t.Context(), b, err); err == nil || errors.Is(err, ErrAborted) {
			t.Errorf("the session would go on: %v", err)
		}
		if len(c.did) > 0 {
			t.Errorf("it did %q", c.did)
		}
	})
}
