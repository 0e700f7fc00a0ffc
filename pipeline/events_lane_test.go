package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/consumer/client"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/memory"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/pipeline"
)

// A claim may end between the attempt that made it and the repeat: the record then claims again,
// and is the first again.
func TestAClaimThatEndsBeforeTheRepeatIsMadeAnew(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		clock := &clock{now: time.Now()}
		s.store = memory.New(memory.Options{Violation: t.Errorf, Now: clock.read})
		s.ttl, s.lanes = time.Minute, 1
		s.join = func(session pipeline.Session) pipeline.Session {
			begin := func() error {
				if clock.advance(2*time.Minute, 3) {
					return errors.New("crash after the claims")
				}
				return nil
			}
			return &failing{session, begin, func() error { return nil }}
		}
		s.produce(orders(500, 90)...)
		s.start("one")
		s.finish(500)
	})
}

// The clock goes back: claims that were made in its future still hold, and end as late as they
// said.
func TestAClockThatGoesBackForgetsNothing(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		clock := &clock{now: time.Now()}
		s.store = memory.New(memory.Options{Violation: t.Errorf, Now: clock.read})
		s.ttl = time.Minute
		s.produce(message(0, "a", "A"))
		s.start("one")
		s.waitCommitted(1)
		clock.advance(-time.Hour, 1)
		s.produce(message(1, "a", "A"))
		s.waitCommitted(2)
		clock.advance(time.Hour+30*time.Second, 2)
		s.produce(message(2, "a", "A"))
		s.waitCommitted(3)
		if diff := cmp.Diff([]string{"0:A"}, s.texts(output)); diff != "" {
			t.Error(diff)
		}
	})
}

// A copy was dropped, its claim ended, and the offsets are set back. It claims its ID for itself,
// by a clock that is behind the one of the claimant that wrote the fence, and its batch is given
// back once: the claim is not settled.
func TestAClaimMadeAgainIsLaterThanItsFenceWhateverTheClockSays(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		clock := &clock{now: time.Now()}
		s.store = memory.New(memory.Options{Violation: t.Errorf, Now: clock.read})
		s.ttl, s.lanes = 10*time.Second, 1
		s.produce(message(0, "a", "first"))
		if err := s.startAndFinish("one", 1); err != nil {
			t.Error(err)
		}
		s.produce(message(1, "a", "copy"))
		if err := s.startAndFinish("one", 2); err != nil {
			t.Error(err)
		}
		clock.advance(time.Minute, 1) // the claim ends; a process whose clock is ahead goes on
		s.produce(message(1, "z", "another"))
		if err := s.startAndFinish("two", 3); err != nil {
			t.Error(err)
		}
		clock.advance(-20*time.Second, 2) // the first one's clock
		s.setOffset(1, 0)
		var refused oneRefusal
		s.join = func(session pipeline.Session) pipeline.Session {
			return &failing{session, refused.begin, func() error { return nil }}
		}
		s.start("one again")
		s.waitCommitted(3)
		if diff := cmp.Diff(
			[]string{"0:first", "1:another", "1:copy"}, s.texts(output),
		); diff != "" || !refused.given {
			t.Errorf("%s\noutcomes %v", diff, s.outcomes())
		}
	})
}

// clock stands still until it is told to jump.
type clock struct {
	mu    sync.Mutex
	now   time.Time
	jumps int
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// advance jumps unless it has jumped that often before, and reports whether it did.
func (c *clock) advance(d time.Duration, most int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.jumps >= most {
		return false
	}
	c.jumps++
	c.now = c.now.Add(d)
	return true
}

// One lane fails for a while, the other works; the pipeline is not ready and says why.
func TestALaneThatKeepsFailingDoesNotStopTheOthers(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		var fixed atomic.Bool
		s.member = func(o *client.Options) {
			if strings.HasSuffix(o.Member, "-0") && !fixed.Load() {
				o.FenceTopic = "nowhere"
			}
		}
		n := 0
		more := func() { // there is always something to read, for both lanes
			for p := range partitions {
				s.produce(message(p, fmt.Sprint("id-", n), fmt.Sprint("text ", n)))
				n++
			}
		}
		run := s.start("one")
		testkit.Eventually(t, 30*time.Second, "a pipeline that is not ready for its failing lane",
			func() bool {
				more()
				err := run.Ready()
				return s.failures() >= 4 && err != nil &&
					strings.Contains(err.Error(), "read fences of nowhere")
			})
		if total(s.outcomes()) == 0 {
			t.Error("the other lane did nothing")
		}
		fixed.Store(true)
		testkit.Eventually(t, 60*time.Second, "a ready pipeline", func() bool {
			more()
			return run.Ready() == nil
		})
		s.finish(n)
		s.waitLogged("lane failed, joining again", "read fences of nowhere", "kdedup setup")
	})
}

// An error that no repeat can fix ends all lanes; the others finish their batches.
func TestAStopErrorStopsAllLanes(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		s.policy.OnMissingID = pipeline.Fail
		s.start("one")
		s.waitBalanced(2)
		s.produce(orders(200, 92)...)
		s.waitPast(100)
		run := s.start("two")
		testkit.Eventually(t, 30*time.Second, "the second process in the group", func() bool {
			return run.Ready() == nil
		})
		for p := range partitions {
			s.produce(&kgo.Record{Topic: input, Partition: int32(p), Value: []byte("no ID")})
		}
		if err := run.wait(); !errors.Is(err, pipeline.ErrStop) {
			t.Errorf("got %v", err)
		}
		s.checkCleanButMissing()
	})
}

// checkCleanButMissing: what has an ID is there once, what has none is not.
func (s *site) checkCleanButMissing() {
	s.t.Helper()
	seen := make(map[string]int)
	for _, records := range s.read(output) {
		for _, record := range records {
			if len(record.Headers) == 0 {
				s.t.Error("a record without an ID was forwarded")
				continue
			}
			seen[string(record.Headers[0].Value)]++
		}
	}
	for id, n := range seen {
		if n > 1 {
			s.t.Errorf("%s is %d times on the clean topic", id, n)
		}
	}
	if len(seen) == 0 {
		s.t.Error("nothing was forwarded")
	}
}

// Two processes with one instance name replace each other. With static members at_least_once shows
// it too; without, they are simply two members.
func TestTwoProcessesWithOneInstanceNameFenceEachOther(t *testing.T) {
	for _, static := range []bool{false, true} {
		t.Run(fmt.Sprint("static ", static), func(t *testing.T) {
			event(t, 1, func(t *testing.T, s *site) {
				s.lanes, s.batch = 1, 50
				s.member = func(o *client.Options) { o.Static = static }
				s.produce(orders(1000, 95)...)
				s.start("one")
				s.waitPast(100)
				s.start("one")
				for i := range 4 {
					s.produce(orders(250, uint64(96+i))...)
					s.waitCommitted(int64(1000 + 250*(i+1)))
				}
				s.checkClean(s.transactional || !static)
				if s.transactional || static {
					s.waitLogged("lane failed, joining again",
						"give every process its own instance")
				}
			})
		})
	}
}

// asked counts the claims that a store was asked for.
type asked struct {
	dedup.Claimer
	requests, claims atomic.Int64
}

func (a *asked) Claim(
	ctx context.Context, scope dedup.Scope, claims []dedup.Claim,
) ([]dedup.Answer, error) {
	a.requests.Add(1)
	a.claims.Add(int64(len(claims)))
	return a.Claimer.Claim(ctx, scope, claims)
}

// Every second claim fails. Only what is undecided is asked again: 2 times as many claims in the
// end, not as many as a repeat of whole batches would need.
func TestAFailingStoreIsNotFloodedWithRequests(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		var calls atomic.Int64
		store := &asked{Claimer: memory.New(memory.Options{Violation: t.Errorf,
			Faults: func([]dedup.Claim) memory.Fault {
				odd := int(calls.Add(1))
				return memory.Partial(errors.New("overloaded"), func(i int) memory.Effect {
					if (i+odd)%2 == 0 {
						return memory.Answered
					}
					return memory.Effect(1 + odd%2) // not applied, or not reported
				})
			}})}
		s.store, s.lanes = store, 1
		const n = 3000
		s.produce(orders(n, 99)...)
		s.start("one")
		s.finish(n)
		batches := s.counter("kdedup_batches_total", "result", "committed")
		t.Logf("%d claims in %d requests, for %d records in %v batches", store.claims.Load(),
			store.requests.Load(), n, batches)
		if got := store.claims.Load(); got > 2*n {
			t.Errorf("%d claims were sent for %d records", got, n)
		}
		// log2 of a batch of 100, and one, as it halves each time.
		if got := float64(store.requests.Load()); got > 8*batches {
			t.Errorf("%v requests for %v batches", got, batches)
		}
	})
}
