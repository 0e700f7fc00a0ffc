package dedup

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kdedup/kdedup/internal/testkit"
)

// switched is a store that answers while it is up.
type switched struct{ up atomic.Bool }

func (s *switched) Claim(_ context.Context, _ Scope, claims []Claim) ([]Answer, error) {
	if s.up.Load() {
		return applied(claims)
	}
	return undecidedAll(claims)
}

// Thirty lanes wait for one store: the log says so in a line, and in one that they go on.
func TestAnOutageOfManyLanesIsOneLineOfTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lanes = 30
		var text testkit.Printed
		store, outages := &switched{}, NewOutages(slog.New(slog.NewTextHandler(&text, nil)))
		var judging sync.WaitGroup
		for lane := range lanes {
			d := New(Scope{}, store, Options{Extractor: firstHeader{}, Outages: outages,
				Lane: lane})
			judging.Go(func() {
				if _, err := d.Judge(t.Context(), []Message{messageAt(1, "a", "A")}); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(5 * time.Minute) // of the bubble
		store.up.Store(true)
		judging.Wait()
		lines := strings.Split(strings.TrimSpace(text.String()), "\n")
		if len(lines) != 2 ||
			!strings.Contains(lines[0], `level=WARN msg="claims undecided, claiming again" `+
				`lanes=30 error="no quorum" claims=1`) ||
			!strings.Contains(lines[1], `level=INFO msg="claims decided again" lanes=30 after=5m`) {
			t.Errorf("%q", lines)
		}
	})
}

func TestADeduperOfItsOwnTellsItsOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text testkit.Printed
		store := &scripted{t: t, next: []func([]Claim) ([]Answer, error){undecidedAll, applied}}
		d := New(Scope{}, store, Options{Extractor: firstHeader{},
			Logger: slog.New(slog.NewTextHandler(&text, nil))})
		if _, err := d.Judge(t.Context(), []Message{messageAt(1, "a", "A")}); err != nil {
			t.Fatal(err)
		}
		if got := text.String(); strings.Count(got, "\n") != 2 ||
			!strings.Contains(got, "claiming again\" error=\"no quorum\" claims=1\n") {
			t.Error(got)
		}
	})
}
