package migrate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is two stores on one clock, which the test moves.
type world struct {
	t        *testing.T
	random   *rand.Rand
	now      time.Time
	from, to *flaky
	options  Options
}

// flaky fails as often as the test says.
type flaky struct {
	*memory.Store
	pages int // that Export shows before it fails; below 0: all
	finds int // that fail
}

var errOutage = errors.New("outage")

func (f *flaky) Export(
	ctx context.Context, scope dedup.Scope, page func([]dedup.Standing) error,
) error {
	left := f.pages
	return f.Store.Export(ctx, scope, func(told []dedup.Standing) error {
		for len(told) > 0 {
			if left == 0 {
				return errOutage
			}
			left--
			n := min(len(told), 7)
			if err := page(told[:n]); err != nil {
				return err
			}
			told = told[n:]
		}
		return nil
	})
}

func (f *flaky) Find(
	ctx context.Context, scope dedup.Scope, ids []dedup.ID,
) ([]dedup.Standing, error) {
	if f.finds > 0 {
		f.finds--
		return nil, errOutage
	}
	return f.Store.Find(ctx, scope, ids)
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, random: rand.New(rand.NewPCG(seed, 1)),
		now: time.UnixMilli(1_700_000_000_000)}
	clock := func() time.Time { return w.now }
	w.from = &flaky{Store: memory.New(memory.Options{Now: clock, Violation: t.Errorf}), pages: -1}
	w.to = &flaky{Store: memory.New(memory.Options{Now: clock, Violation: t.Errorf,
		Faults: w.faults}), pages: -1}
	w.options = Options{
		From: Place{w.from, dedup.Scope{ConsumerGroup: "g", Name: "old", TTL: time.Hour}},
		To:   Place{w.to, dedup.Scope{ConsumerGroup: "g", Name: "new", TTL: time.Second}},
		Now:  clock, Pause: time.Nanosecond, Attempts: 2,
	}
	return w
}

// faults lose claims and answers, and let the time pass.
func (w *world) faults(claims []dedup.Claim) memory.Fault {
	if w.random.IntN(3) > 0 {
		return memory.Fault{}
	}
	w.now = w.now.Add(time.Duration(w.random.IntN(3000)) * time.Millisecond)
	return memory.Partial(errOutage, func(int) memory.Effect {
		return memory.Effect(w.random.IntN(3))
	})
}

// claims have any end, some of them soon.
func (w *world) claims(n int) {
	var claims []dedup.Standing
	for i := range n {
		c := dedup.Standing{ID: dedup.ID(fmt.Sprint(i)), ClaimedAt: w.now.Add(-time.Hour),
			Owner: dedup.Coordinates{Partition: w.random.Int32(), Offset: w.random.Int64()}}
		c.Fingerprint[0] = byte(w.random.Int())
		c.Ends = w.now.Add(time.Duration(1+w.random.IntN(3000)) * time.Second)
		if w.random.IntN(3) == 0 {
			c.Ends = w.now.Add(time.Duration(1+w.random.IntN(20_000)) * time.Millisecond)
		}
		claims = append(claims, c)
	}
	if _, err := w.from.Import(w.t.Context(), w.options.From.Scope, claims); err != nil {
		w.t.Fatal(err)
	}
}

func all(t *testing.T, p Place) map[dedup.ID]dedup.Standing {
	t.Helper()
	told := make(map[dedup.ID]dedup.Standing)
	store := p.Store.(*flaky).Store
	if err := store.Export(t.Context(), p.Scope, func(page []dedup.Standing) error {
		for _, c := range page {
			told[c.ID] = c
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return told
}

// Whatever fails, and whenever a copy is begun again: what lives arrives exactly as it was, and
// nothing that has ended is made again.
func TestEveryLivingClaimArrivesAndNoneThatHasEndedIsRevived(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, seed)
			w.claims(1 + w.random.IntN(300))
			original := all(t, w.options.From)
			for tries := 0; ; tries++ {
				w.from.pages = w.random.IntN(60)
				if tries > 40 {
					w.from.pages = -1
				}
				c, err := Copy(t.Context(), w.options)
				if c.Differ.Count > 0 {
					t.Fatalf("differences: %+v", c.Differ)
				}
				for id, copied := range all(t, w.options.To) {
					if want := original[id]; copied != want {
						t.Fatalf("%q is %+v, want %+v", id, copied, want)
					}
				}
				if err == nil {
					break
				}
				w.now = w.now.Add(time.Duration(w.random.IntN(100)) * time.Second)
			}
			w.from.pages, w.to.finds = -1, w.random.IntN(3)
			living := all(t, w.options.From)
			copied := all(t, w.options.To)
			for id, want := range living {
				if copied[id] != want {
					t.Fatalf("%q is %+v, want %+v", id, copied[id], want)
				}
			}
			if len(copied) != len(living) {
				t.Fatalf("%d claims, want %d", len(copied), len(living))
			}
			c, err := Compare(t.Context(), w.options)
			if err != nil || c.Differ.Count > 0 || c.Old != int64(len(living)) || c.New != c.Old {
				t.Fatalf("compared: %+v, %v, want %d claims", c, err, len(living))
			}
		})
	}
}

// sabotaged is a copy of which one claim was changed afterwards.
func sabotaged(
	t *testing.T, change func(w *world, of Place, c dedup.Standing),
) (*world, Comparison) {
	t.Helper()
	w := newWorld(t, 1)
	w.claims(50)
	long := dedup.Standing{ID: "x", Owner: dedup.Coordinates{Offset: 1}, ClaimedAt: w.now,
		Ends: w.now.Add(time.Hour)}
	if _, err := w.from.Import(t.Context(), w.options.From.Scope,
		[]dedup.Standing{long}); err != nil {
		t.Fatal(err)
	}
	w.options.Attempts = 100
	if _, err := Copy(t.Context(), w.options); err != nil {
		t.Fatal(err)
	}
	change(w, w.options.To, long)
	c, err := Compare(t.Context(), w.options)
	if err != nil {
		t.Fatal(err)
	}
	return w, c
}

func replace(w *world, of Place, c dedup.Standing) {
	w.t.Helper()
	store := of.Store.(*flaky).Store
	if err := store.Release(w.t.Context(), of.Scope, c.ID); err != nil {
		w.t.Fatal(err)
	}
	for range 100 { // faults
		a, _ := store.Import(w.t.Context(), of.Scope, []dedup.Standing{c})
		if a[0].Outcome != dedup.Undecided {
			return
		}
	}
	w.t.Fatal("undecided")
}

func TestAComparisonFindsEachKindOfDifference(t *testing.T) {
	for name, change := range map[string]func(w *world, of Place, c dedup.Standing){
		"missing": func(w *world, of Place, c dedup.Standing) {
			if err := of.Store.(*flaky).Release(w.t.Context(), of.Scope, c.ID); err != nil {
				w.t.Fatal(err)
			}
		},
		"one too many": func(w *world, of Place, c dedup.Standing) {
			c.ID = "nobody's"
			replace(w, of, c)
		},
		"another owner": func(w *world, of Place, c dedup.Standing) {
			c.Owner.Offset++
			replace(w, of, c)
		},
		"another content": func(w *world, of Place, c dedup.Standing) {
			c.Fingerprint[15]++
			replace(w, of, c)
		},
		"another time": func(w *world, of Place, c dedup.Standing) {
			c.ClaimedAt = c.ClaimedAt.Add(time.Millisecond)
			replace(w, of, c)
		},
		"another end": func(w *world, of Place, c dedup.Standing) {
			c.Ends = c.Ends.Add(-time.Minute)
			replace(w, of, c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, c := sabotaged(t, change)
			if c.Differ.Count != 1 || len(c.Differ.Examples) != 1 {
				t.Fatalf("differences: %+v", c.Differ)
			}
			again, err := Copy(t.Context(), w.options)
			if err != nil {
				t.Fatal(err)
			}
			switch name { // a copy that is made again never touches what is there
			case "another owner", "another content", "another time":
				if again.Differ.Count != 1 {
					t.Errorf("a second copy tells %+v", again)
				}
			case "missing":
				if again.Copied == 0 {
					t.Errorf("a second copy tells %+v", again)
				}
			}
		})
	}
}

func TestAStoreThatDoesNotAnswerEndsTheCopy(t *testing.T) {
	w := newWorld(t, 1)
	w.claims(50)
	w.to.Store = memory.New(memory.Options{Now: w.options.Now,
		Faults: func([]dedup.Claim) memory.Fault { return memory.Lost(errOutage) }})
	if c, err := Copy(t.Context(), w.options); !errors.Is(err, errOutage) {
		t.Errorf("copied %+v, %v", c, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w.options.Attempts, w.options.Pause = 1, time.Hour
	w.options.Progress = func(int64) {}
	time.AfterFunc(10*time.Millisecond, cancel)
	if c, err := Copy(ctx, w.options); !errors.Is(err, context.Canceled) {
		t.Errorf("copied %+v, %v", c, err)
	}
	if _, err := Compare(ctx, w.options); !errors.Is(err, context.Canceled) {
		t.Errorf("compared: %v", err)
	}
}
