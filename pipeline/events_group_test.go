package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/kdedup/kdedup/consumer/client"
	fences "github.com/kdedup/kdedup/fence"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/pipeline"
)

// compactInput has the input keep the last state of each key. Compact does it.
func (s *site) compactInput() {
	s.t.Helper()
	policy := "compact"
	_, err := kadm.NewClient(s.client).AlterTopicConfigs(s.t.Context(),
		[]kadm.AlterConfig{{Op: kadm.SetConfig, Name: "cleanup.policy", Value: &policy}}, input)
	if err != nil {
		s.t.Fatal(err)
	}
}

// setOffset does what another program does, or an operator: it leaves an offset that says nothing
// of kdedup.
func (s *site) setOffset(partition int32, at int64) {
	s.t.Helper()
	to := make(kadm.Offsets)
	to.AddOffset(input, partition, at, -1)
	testkit.Eventually(s.t, 10*time.Second, "the offset is set", func() bool {
		return kadm.NewClient(s.client).CommitAllOffsets(s.t.Context(), group, to) == nil
	})
}

// The records below such an offset were handled by a program that forwarded nothing.
func TestOffsetsOfAnotherProgramAreNotBelieved(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		s.lanes = 1
		s.produce(message(0, "a", "A"), message(0, "b", "B"), message(1, "c", "C"))
		s.setOffset(0, 1)
		run := s.start("one")
		s.waitLogged("lane failed", "orders[0] at 1", "--adopt-offsets")
		testkit.Eventually(t, 30*time.Second, "the reason in the readiness", func() bool {
			return run.Ready() != nil
		})
		if got := s.texts(output); len(got) > 0 {
			t.Errorf("%v were forwarded", got)
		}
		if err := run.stop(); err != nil {
			t.Fatal(err)
		}
		s.deleteGroup()
		s.start("two")
		s.waitCommitted(3)
		if diff := cmp.Diff([]string{"0:A", "0:B", "1:C"}, s.texts(output)); diff != "" {
			t.Error(diff)
		}
	})
}

// A fence topic may be named again, or lost. Nothing tells then what was handled but the offsets,
// which are kdedup's own.
func TestAGroupGoesOnWithoutItsFences(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		s.lanes = 1
		s.produce(message(0, "a", "A"), message(1, "b", "B"))
		if err := s.startAndFinish("one", 2); err != nil {
			t.Fatal(err)
		}
		admin := kadm.NewClient(s.client)
		if _, err := admin.DeleteTopics(t.Context(), fence); err != nil {
			t.Fatal(err)
		}
		if _, err := admin.CreateTopics(t.Context(), partitions, 1, nil, fence); err != nil {
			t.Fatal(err)
		}
		s.produce(message(1, "c", "C"))
		s.start("two")
		s.waitCommitted(3)
		if diff := cmp.Diff([]string{"0:A", "1:B", "1:C"}, s.texts(output)); diff != "" {
			t.Error(diff)
		}
	})
}

// A message_id that finds nothing would send all of the input to the dead-letter topic.
func TestAFirstBatchWithoutAnyIDIsHeldWhileTheInputShowsNone(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		s.lanes, s.policy.OnMissingID = 1, pipeline.DeadLetter
		var asked, shows atomic.Int32
		s.identify = func(context.Context) error {
			asked.Add(1)
			if shows.Load() == 0 {
				return errors.New("found in 0 of 2")
			}
			return nil
		}
		a, b := message(0, "", "A"), message(1, "", "B")
		a.Headers, b.Headers = nil, nil
		s.produce(a, b)
		run := s.start("one")
		s.waitLogged("lane failed", "found in 0 of 2", "correct message_id")
		testkit.Eventually(t, 30*time.Second, "the reason in the readiness", func() bool {
			return errors.Is(run.Ready(), pipeline.ErrNoIDs)
		})
		if dead := s.texts(deadTopic); len(dead) > 0 || s.committed() > 0 {
			t.Errorf("%v were dead-lettered, %d committed", dead, s.committed())
		}
		shows.Store(1)
		s.waitCommitted(2)
		if diff := cmp.Diff([]string{"0:A", "1:B"}, s.texts(deadTopic)); diff != "" {
			t.Error(diff)
		}
		before := asked.Load()
		c := message(2, "", "C")
		c.Headers = nil
		s.produce(c)
		s.waitCommitted(3)
		if asked.Load() != before {
			t.Error("a batch behind one with an ID was asked about")
		}
	})
}

// Partitions may move to a process whose store does not have the claims of who had them before.
func TestFencesOfAnotherStoreHoldTheLane(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		s.lanes = 1
		in := func(store string) {
			s.member = func(o *client.Options) {
				o.Store = store
				o.CheckStore = func(_ context.Context, _ int32, f fences.Fence) error {
					if f.Store == "accepted" {
						return nil
					}
					return fmt.Errorf("claims of %s are not in %s", f.Store, store)
				}
			}
		}
		in("accepted")
		s.produce(message(0, "a", "A"))
		if err := s.startAndFinish("one", 1); err != nil {
			t.Fatal(err)
		}
		in("second")
		s.produce(message(0, "b", "B"))
		if err := s.startAndFinish("two", 2); err != nil {
			t.Fatal(err)
		}
		in("third")
		s.produce(message(0, "c", "C"))
		run := s.start("three")
		s.waitLogged("lane failed", "fence of orders[0]", "claims of second are not in third")
		testkit.Eventually(t, 30*time.Second, "the reason in the readiness", func() bool {
			return run.Ready() != nil
		})
		if diff := cmp.Diff([]string{"0:A", "0:B"}, s.texts(output)); diff != "" {
			t.Error(diff)
		}
	})
}

// The process has begun before the claims were moved, and its lane joins afterwards.
func TestALaneWhoseClaimsWereMovedAwayTakesNothing(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		s.lanes = 1
		var moved atomic.Bool
		s.member = func(o *client.Options) {
			o.CheckScope = func(context.Context) error {
				if moved.Load() {
					return errors.New("the claims were moved away")
				}
				return nil
			}
		}
		s.produce(message(0, "a", "A"))
		if err := s.startAndFinish("one", 1); err != nil {
			t.Fatal(err)
		}
		moved.Store(true)
		s.produce(message(0, "b", "B"))
		s.start("two")
		s.waitLogged("lane failed", "the claims were moved away")
		if diff := cmp.Diff([]string{"0:A"}, s.texts(output)); diff != "" {
			t.Error(diff)
		}
	})
}

// Their policy takes them elsewhere, and all else looks well.
func TestOddRecordsAreToldWithPlaceAndReason(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		s.lanes, s.batch = 1, 10
		s.policy.OnMissingID, s.policy.OnConflict = pipeline.DeadLetter, pipeline.DeadLetter
		missing := message(0, "", "M")
		missing.Headers = nil
		s.produce(message(0, "a", "A"), missing, message(0, "a", "X"))
		run := s.start("one")
		s.waitCommitted(3)
		s.waitLogged("records have no message ID", "records=1", "last=orders[0]@1", "reason=absent",
			"became=dead_lettered")
		s.waitLogged("a known message ID with other content", "last=orders[0]@2",
			"owned by partition 0, offset 0")
		again := message(0, "", "N")
		again.Headers = nil
		s.produce(again)
		s.waitCommitted(4)
		if err := run.stop(); err != nil {
			t.Fatal(err)
		}
		if lines := s.logs.with("records have no message ID"); len(lines) != 1 {
			t.Errorf("within a minute: %q", lines)
		}
	})
}
