package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/forwarder"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/pipeline"
)

// idleSession is that of a member of the group for whom there is nothing to do.
type idleSession struct{ pipeline.Session }

func (idleSession) Poll(ctx context.Context) (*consumer.Batch, error) {
	<-ctx.Done()
	return nil, nil
}

func (idleSession) Joined() bool { return true }

func (idleSession) Close() {}

// Thirty lanes fail for one broker: the log says so in a line, and in one that they go on, though
// none of them has anything to commit.
func TestLanesThatFailForOneCauseAreOneLineOfTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lanes = 30
		var (
			text testkit.Printed
			up   atomic.Bool
		)
		p := pipeline.New(pipeline.Options{
			Name: input, Lanes: lanes, ShutdownTimeout: time.Minute,
			Judge: func(int) pipeline.Judge { return nil },
			Join: func(_ context.Context, lane int) (
				pipeline.Session, *forwarder.Topics, error,
			) {
				if !up.Load() {
					return nil, nil, fmt.Errorf("dial one:%d: refused", 9000+lane)
				}
				return idleSession{}, &forwarder.Topics{}, nil
			},
			Collectors: pipeline.NewCollectors(prometheus.NewRegistry()),
			Logger:     slog.New(slog.NewTextHandler(&text, nil)),
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		time.Sleep(5 * time.Minute) // of the bubble, here and below
		up.Store(true)
		time.Sleep(5 * time.Minute)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		lines := strings.Split(strings.TrimSpace(text.String()), "\n")
		if len(lines) != 2 ||
			!strings.Contains(lines[0], `level=WARN msg="lane failed, joining again" `+
				`topic=orders lanes=30 error="dial one:90`) ||
			!strings.Contains(lines[1],
				`level=INFO msg="all lanes go on again" topic=orders lanes=30 after=5m`) {
			t.Errorf("%q", lines)
		}
	})
}

func TestLanesThatStopForOneCauseAreOneLineAndOneError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text testkit.Printed
		p := pipeline.New(pipeline.Options{
			Name: input, Lanes: 5, ShutdownTimeout: time.Minute,
			Judge: func(int) pipeline.Judge { return nil },
			Join: func(_ context.Context, lane int) (pipeline.Session, *forwarder.Topics, error) {
				time.Sleep(time.Second) // of the bubble: all are at it when the first one ends
				if lane == 4 {
					return nil, nil, fmt.Errorf("other: %w", pipeline.ErrStop)
				}
				return nil, nil, fmt.Errorf("fatal: %w", pipeline.ErrStop)
			},
			Collectors: pipeline.NewCollectors(prometheus.NewRegistry()),
			Logger:     slog.New(slog.NewTextHandler(&text, nil)),
		})
		err := p.Run(t.Context())
		if err == nil || !errors.Is(err, pipeline.ErrStop) {
			t.Fatal(err)
		}
		if lines, said := strings.Count(text.String(), "level=ERROR msg=\"lane stopped\" "+
			"topic=orders lane"), strings.Split(err.Error(), "\n"); lines > 2 ||
			len(said) > 2 {
			t.Errorf("%d lines: %s\n%v", lines, text.String(), err)
		}
	})
}

// What ends at once with the stop leaves no word of a recovery.
func TestLanesThatFailUntilTheStopAreNotSaidToGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text testkit.Printed
		p := pipeline.New(pipeline.Options{
			Name: input, Lanes: 2, ShutdownTimeout: time.Minute,
			Judge: func(int) pipeline.Judge { return nil },
			Join: func(context.Context, int) (pipeline.Session, *forwarder.Topics, error) {
				return nil, nil, context.DeadlineExceeded
			},
			Collectors: pipeline.NewCollectors(prometheus.NewRegistry()),
			Logger:     slog.New(slog.NewTextHandler(&text, nil)),
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		time.Sleep(100 * time.Millisecond)
		if err := p.Ready(); err == nil || err.Error() != "orders 2 lanes: context deadline "+
			"exceeded" {
			t.Errorf("ready: %v", err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if got := text.String(); strings.Count(got, "\n") != 1 ||
			!strings.Contains(got, "lanes=2") {
			t.Error(got)
		}
	})
}

// interrupted is a session that reads fences when the stop comes.
type interrupted struct{ idleSession }

func (interrupted) Poll(ctx context.Context) (*consumer.Batch, error) {
	<-ctx.Done()
	return nil, fmt.Errorf("read fences of orders.fence: %w", ctx.Err())
}

// A stop in the middle of a take-over is no failure.
func TestAStopThatInterruptsAPollIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text testkit.Printed
		registry := prometheus.NewRegistry()
		p := pipeline.New(pipeline.Options{
			Name: input, Lanes: 2, ShutdownTimeout: time.Minute,
			Judge: func(int) pipeline.Judge { return nil },
			Join: func(context.Context, int) (pipeline.Session, *forwarder.Topics, error) {
				return interrupted{}, &forwarder.Topics{}, nil
			},
			Collectors: pipeline.NewCollectors(registry),
			Logger:     slog.New(slog.NewTextHandler(&text, nil)),
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		synctest.Wait()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if text.String() != "" {
			t.Errorf("told: %s", text.String())
		}
		if n := testkit.ReadMetrics(t, registry).Value("kdedup_lane_failures_total"); n > 0 {
			t.Errorf("%v failures are counted", n)
		}
	})
}
