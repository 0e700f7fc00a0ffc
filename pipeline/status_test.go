package pipeline_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/forwarder"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/pipeline"
)

var errAway = errors.New("broker away")

// member is a session that is a member and has two partitions; the rest of it is not used.
type member struct {
	pipeline.Session
	poll func(context.Context) (*consumer.Batch, error)
}

func (s *member) Poll(ctx context.Context) (*consumer.Batch, error) { return s.poll(ctx) }
func (s *member) Joined() bool                                      { return true }
func (s *member) Close()                                            {}
func (s *member) Assignments() []consumer.Assignment {
	return []consumer.Assignment{{Partition: 1, Fence: 10}, {Partition: 4}}
}

// idle waits for records that never come.
func idle(ctx context.Context) (*consumer.Batch, error) {
	<-ctx.Done()
	return nil, nil
}

// working runs a pipeline of one lane until the test ends.
func working(t *testing.T, join func() (pipeline.Session, error)) *pipeline.Pipeline {
	t.Helper()
	p := pipeline.New(pipeline.Options{
		Name: "orders", Lanes: 1, ShutdownTimeout: time.Second,
		Logger: slog.New(slog.DiscardHandler),
		Join: func(context.Context, int) (pipeline.Session, *forwarder.Topics, error) {
			s, err := join()
			return s, &forwarder.Topics{}, err
		},
		Judge:      func(int) pipeline.Judge { return nil },
		Collectors: pipeline.NewCollectors(prometheus.NewRegistry()),
	})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return p
}

func TestLanesTellTheirStateAndTheirPartitions(t *testing.T) {
	p := working(t, func() (pipeline.Session, error) { return &member{poll: idle}, nil })
	testkit.Eventually(t, time.Minute, "a lane that has joined", func() bool {
		return p.Lanes()[0].Joined
	})
	want := []pipeline.LaneState{{Joined: true,
		Assigned: []consumer.Assignment{{Partition: 1, Fence: 10}, {Partition: 4}}}}
	if diff := cmp.Diff(want, p.Lanes()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestALaneRemembersItsLastFailureAfterItRecovered(t *testing.T) {
	failures := 0
	p := working(t, func() (pipeline.Session, error) {
		if failures++; failures == 1 {
			return nil, errAway
		}
		return &member{poll: idle}, nil
	})
	testkit.Eventually(t, time.Minute, "a lane that has joined", func() bool {
		return p.Lanes()[0].Joined
	})
	got := p.Lanes()[0]
	if !errors.Is(got.Failure.Err, errAway) || got.Failure.At.IsZero() || got.Failures != 1 ||
		got.Failing || got.Stopped {
		t.Errorf("got %+v", got)
	}
}

func TestALaneThatFailsAgainAndAgainIsFailing(t *testing.T) {
	p := working(t, func() (pipeline.Session, error) { return nil, errAway })
	testkit.Eventually(t, time.Minute, "a lane that fails", func() bool {
		return p.Lanes()[0].Failing
	})
	if got := p.Lanes()[0]; got.Joined || got.Failures < 3 {
		t.Errorf("got %+v", got)
	}
}

func TestAStoppedLaneTellsWhyAndWhatToDo(t *testing.T) {
	p := working(t, func() (pipeline.Session, error) { return nil, consumer.ErrInputReplaced })
	testkit.Eventually(t, time.Minute, "a lane that stopped", func() bool {
		return p.Lanes()[0].Stopped
	})
	if got := p.Lanes()[0].Failure; !errors.Is(got.Err, consumer.ErrInputReplaced) ||
		got.Hint == "" {
		t.Errorf("got %+v", got)
	}
}

// The real sessions tell their partitions too: each belongs to one lane, and is done to where it
// was read.
func TestSessionsTellTheirPartitions(t *testing.T) {
	for _, transactional := range []bool{true, false} {
		_, brokers := testkit.FakeKafka(t)
		r := newRig(t, brokers)
		r.transactional = transactional
		run := r.start("one")
		testkit.Eventually(t, 30*time.Second, "lanes with equal shares", func() bool {
			return !slices.ContainsFunc(run.Lanes(), func(l pipeline.LaneState) bool {
				return len(l.Assigned) != partitions/2
			})
		})
		r.produce(message(2, "a", "a"), message(2, "b", "b"))
		r.waitCommitted(2)
		testkit.Eventually(t, 30*time.Second, "all partitions, and how far they are done",
			func() bool {
				done := map[int32]int64{}
				for _, lane := range run.Lanes() {
					for _, a := range lane.Assigned {
						if _, twice := done[a.Partition]; twice {
							return false // it moves from one lane to the other
						}
						done[a.Partition] = a.Fence
					}
				}
				return cmp.Equal(done, map[int32]int64{0: 0, 1: 0, 2: 2, 3: 0})
			})
	}
}
