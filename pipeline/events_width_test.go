package pipeline_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/consumer/client"
	"github.com/kdedup/kdedup/internal/testkit"
)

// New partitions of the input need as many in the output and the fence.
func TestNewInputPartitionsWaitForTheOthers(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		s.connection = append(s.connection, kgo.MetadataMaxAge(100*time.Millisecond))
		s.produce(orders(500, 68)...)
		run := s.start("one")
		s.waitCommitted(500)
		s.widen(input)
		s.produce(message(5, "new-0", "new 0"), message(0, "new-1", "new 1"))
		s.waitHeld(run, "orders[5] held at offset 0: topic orders-dedup.fence has no partition 5")
		s.waitCommitted(501)
		s.produce(message(1, "new-2", "new 2"))
		s.waitCommitted(502)
		s.widen(fence)
		s.waitHeld(run, "orders[5] held at offset 0: topic orders.clean has no partition 5, as orders has; records")
		if err := run.Ready(); err != nil {
			t.Errorf("one partition waits, and the pipeline is not ready: %v", err)
		}
		s.widen(output)
		s.waitCommitted(503)
		s.wantNew(3)
		testkit.Eventually(t, 30*time.Second, "nothing is held", func() bool {
			return len(run.Held()) == 0
		})
		if n := s.failures(); n > 0 {
			t.Errorf("%v lanes failed", n)
		}
		if told := s.logs.with("a partition is held", "partition=5"); len(told) != 1 {
			t.Errorf("told: %q", told)
		}
	})
}

func (s *site) waitHeld(run *running, reason string) {
	s.t.Helper()
	testkit.Eventually(s.t, 30*time.Second, "held: "+reason, func() bool {
		return strings.Contains(strings.Join(run.Held(), "\n"), reason)
	})
}

// A start does not wait for a partition without a counterpart, either. Topics that are kdedup's own
// are widened by the lane that meets it.
func TestALaneWidensTheTopicsThatAreItsOwn(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		s.widen(input)
		s.widen(output)
		s.produce(message(5, "new-0", "new 0"), message(0, "new-1", "new 1"))
		s.member = func(o *client.Options) {
			o.Width.Widen = func(context.Context) error {
				_, err := kadm.NewClient(s.client).UpdatePartitions(t.Context(), partitions+2,
					fence)
				return err
			}
		}
		s.start("one")
		s.waitCommitted(2)
		if n := s.failures(); n > 0 {
			t.Errorf("%v lanes failed", n)
		}
	})
}

// widen gives a topic two more partitions, and the test's client a fresh view of it.
func (s *site) widen(topic string) {
	s.t.Helper()
	answer, err := kadm.NewClient(s.client).UpdatePartitions(s.t.Context(), partitions+2, topic)
	if err == nil {
		err = answer.Error()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.client.PurgeTopicsFromClient(topic)
}
