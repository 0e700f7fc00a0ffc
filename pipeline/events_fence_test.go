package pipeline_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/kdedup/kdedup/consumer/client"
	"github.com/kdedup/kdedup/dedup/memory"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/pipeline"
)

// Offsets that are above the fence, while the client validates them with a leader that is slow: it
// passes over every attempt to set other ones.
func TestOffsetsAboveTheFenceAreNotBelievedWhileTheLeaderIsSlow(t *testing.T) {
	for name, slow := range map[string]bool{"the leader answers": false,
		"the leader is slow": true} {
		t.Run(name, func(t *testing.T) {
			event(t, 1, func(t *testing.T, s *site) {
				s.lanes = 1
				s.produce(message(0, "a", "A"), message(1, "b", "B"))
				if err := s.startAndFinish("one", 2); err != nil {
					t.Fatal(err)
				}
				s.produce(message(0, "c", "skipped"), message(0, "d", "D"), message(1, "e", "E"))
				to := make(kadm.Offsets)
				// with its leader epoch, as every commit of a consumer has
				to.AddOffset(input, 0, 2, 0)
				if err := kadm.NewClient(s.client).CommitAllOffsets(
					t.Context(), group, to,
				); err != nil {
					t.Fatal(err)
				}
				if slow {
					late := s.cluster.Fault(kfake.Fault{
						Keys: []kmsg.Key{kmsg.OffsetForLeaderEpoch}, Topic: input,
						Partitions: []int32{0},
						Err:        kerr.NotLeaderForPartition, Count: -1,
					})
					time.AfterFunc(2*time.Second, late.Remove)
				}
				s.start("one")
				s.waitCommitted(5)
				if diff := cmp.Diff(
					[]string{"0:A", "0:D", "0:skipped", "1:B", "1:E"}, s.texts(output),
				); diff != "" {
					t.Errorf("%s\noutcomes %v", diff, s.outcomes())
				}
			})
		})
	}
}

// Kafka keeps the offsets of a group that has no members for seven days. The fence knows what was
// handled.
func TestExpiredOffsetsForwardNothingAgain(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		clock := &clock{now: time.Now()}
		s.store = memory.New(memory.Options{Violation: t.Errorf, Now: clock.read})
		s.ttl, s.lanes = time.Minute, 1
		s.produce(message(0, "a", "A"), message(1, "b", "B"))
		if err := s.startAndFinish("one", 2); err != nil {
			t.Fatal(err)
		}
		clock.advance(2*time.Minute, 1)
		s.deleteGroup()
		s.produce(message(1, "c", "C"))
		s.start("one")
		s.waitCommitted(3)
		if diff := cmp.Diff([]string{"0:A", "1:B", "1:C"}, s.texts(output)); diff != "" {
			t.Errorf("%s\noutcomes %v", diff, s.outcomes())
		}
	})
}

func (s *site) deleteGroup() {
	s.t.Helper()
	testkit.Eventually(s.t, 10*time.Second, "the group is deleted", func() bool {
		resp, err := kadm.NewClient(s.client).DeleteGroups(s.t.Context(), group)
		return err == nil && resp[group].Err == nil
	})
}

// joinAs has the next starts use another consumer group, with the claims and fences of before.
func (s *site) joinAs(renamed string) {
	if _, err := kadm.NewClient(s.client).CreateTopics(
		s.t.Context(), partitions, 1, nil, renamed+".fence",
	); err != nil {
		s.t.Fatal(err)
	}
	s.member = func(o *client.Options) {
		o.ConsumerGroup, o.FenceTopic, o.Member = renamed, renamed+".fence",
			fmt.Sprintf("%s-one-0", renamed)
		o.TransactionalID = o.Member
		o.Earlier = client.Earlier{Group: group, FenceTopic: fence}
	}
}

// The new group has no offsets, and every record owns its ID already.
func TestARenamedGroupForwardsNothingAgain(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		s.lanes = 1
		s.produce(message(0, "a", "A"), message(1, "b", "B"), message(2, "a", "A"))
		if err := s.startAndFinish("one", 3); err != nil {
			t.Fatal(err)
		}
		s.joinAs("orders-dedup-2")
		s.produce(message(1, "c", "C"))
		s.start("one")
		testkit.Eventually(t, 20*time.Second, "a further outcome", func() bool {
			return total(s.outcomes()) == 4
		})
		if diff := cmp.Diff([]string{"0:A", "1:B", "1:C"}, s.texts(output)); diff != "" {
			t.Errorf("%s\noutcomes %v", diff, s.outcomes())
		}
	})
}

// Each record would own its ID for both groups, and both would forward it.
func TestASecondGroupOfTheSameScopeIsRefused(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		s.lanes = 1
		s.produce(message(0, "a", "A"))
		s.start("one")
		s.waitCommitted(1)
		s.joinAs("orders-dedup-2")
		second := s.start("two")
		testkit.Eventually(t, 20*time.Second, "a refusal", func() bool {
			return len(s.logs.with("orders-dedup has members, and handled orders[0] last")) > 0
		})
		testkit.Eventually(t, 20*time.Second, "a pipeline that is not ready", func() bool {
			return second.Ready() != nil // between two failures it may be
		})
		_ = second.stop()
		if diff := cmp.Diff([]string{"0:A"}, s.texts(output)); diff != "" {
			t.Error(diff)
		}
	})
}

// unforwarded claims what is on the input and is stopped before it forwards anything.
func (s *site) unforwarded() {
	s.t.Helper()
	tried := make(chan struct{}, 1)
	s.join = func(session pipeline.Session) pipeline.Session {
		begin := func() error {
			select {
			case tried <- struct{}{}:
			default:
			}
			return errors.New("the output is down")
		}
		return &failing{session, begin, func() error { return nil }}
	}
	run := s.start("one")
	<-tried
	_ = run.stop()
	s.join = nil
}

// A claim is made, and its batch never commits. A later copy has the same key, as a producer's
// retry has, so compaction removes the owner of the ID.
func TestTheCopyOfACompactedOwnerIsForwarded(t *testing.T) {
	other := func() *kgo.Record {
		r := state("k1", "a", "A")
		r.Value = []byte("other")
		return r
	}
	for name, row := range map[string]struct {
		later func() []*kgo.Record
		want  []string
	}{
		"one copy": {func() []*kgo.Record {
			return []*kgo.Record{state("k1", "a", "A"), state("k2", "b", "B")}
		}, []string{"0:A", "0:B"}},
		"copies with several keys": {func() []*kgo.Record {
			return []*kgo.Record{state("k1", "z", "Z"), state("k2", "a", "A"),
				state("k3", "a", "A"), state("k4", "b", "B")}
		}, []string{"0:A", "0:B", "0:Z"}},
		"with other content": {func() []*kgo.Record {
			return []*kgo.Record{other(), state("k2", "b", "B")}
		}, []string{"0:B", "0:other"}},
	} {
		t.Run(name, func(t *testing.T) {
			event(t, 1, func(t *testing.T, s *site) {
				s.compactInput()
				s.lanes = 1
				s.produce(state("k1", "a", "A"))
				s.unforwarded()
				later := row.later()
				for _, r := range later {
					s.produce(r) // in a batch of its own: the last one is never compacted
				}
				s.cluster.Compact()
				if left := s.read(input)[0]; left[0].Offset == 0 {
					t.Fatal("the owner was not compacted away")
				}
				s.start("one")
				end := int64(1 + len(later))
				s.waitCommitted(end)
				if diff := cmp.Diff(row.want, s.texts(output)); diff != "" {
					t.Errorf("%s\noutcomes %v", diff, s.outcomes())
				}
				s.produce(state("k9", "a", "A")) // is a copy again
				s.waitCommitted(end + 1)
				if diff := cmp.Diff(row.want, s.texts(output)); diff != "" {
					t.Errorf("one more copy: %s\noutcomes %v", diff, s.outcomes())
				}
			})
		})
	}
}

// The owner is compacted away, and the lane passes its place. The producer's retry comes later, and
// after a restart.
func TestTheCopyThatComesAfterACompactedOwnerWasPassedIsForwarded(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		s.compactInput()
		s.lanes = 1
		s.produce(state("k1", "a", "A"))
		s.unforwarded()
		s.produce(state("k1", "b", "B"))
		s.produce(state("k2", "c", "C"))
		s.cluster.Compact()
		if err := s.startAndFinish("one", 3); err != nil {
			t.Error(err)
		}
		s.produce(state("k1", "a", "A"))
		if err := s.startAndFinish("two", 4); err != nil {
			t.Error(err)
		}
		s.produce(state("k1", "a", "A"), state("k3", "a", "A"))
		if err := s.startAndFinish("three", 6); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"0:A", "0:B", "0:C"}, s.texts(output)); diff != "" {
			t.Errorf("%s\noutcomes %v", diff, s.outcomes())
		}
	})
}

// Retention, or an operator, removes the claimed and unforwarded beginning of the log.
func TestTheCopyOfADeletedOwnerIsForwarded(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		s.lanes = 1
		s.produce(message(0, "a", "A"))
		s.unforwarded()
		s.produce(message(0, "a", "A"), message(0, "b", "B"))
		to := make(kadm.Offsets)
		to.AddOffset(input, 0, 1, -1)
		if _, err := kadm.NewClient(s.client).DeleteRecords(t.Context(), to); err != nil {
			t.Fatal(err)
		}
		s.start("one")
		s.waitCommitted(3)
		if diff := cmp.Diff([]string{"0:A", "0:B"}, s.texts(output)); diff != "" {
			t.Errorf("%s\noutcomes %v", diff, s.outcomes())
		}
	})
}

// Brokers are upgraded from before 2.8, or a proxy is put in front of them, while a batch is
// claimed and not committed: the owner in the store has no topic ID, and the record that comes
// again has one, or the other way round.
func TestTopicIDsMayAppearAndDisappear(t *testing.T) {
	old := kversion.V2_7_0()
	for _, row := range []struct {
		name          string
		before, after *kversion.Versions
	}{
		{"an upgrade", old, nil},
		{"back to an old broker", nil, old},
	} {
		t.Run(row.name, func(t *testing.T) {
			event(t, 1, func(t *testing.T, s *site) {
				s.lanes = 1
				plain := s.connection
				with := func(v *kversion.Versions) []kgo.Opt {
					if v == nil {
						return plain
					}
					return append(plain[:len(plain):len(plain)], kgo.MaxVersions(v))
				}
				if s.transactional {
					return // an old client's transactions are not understood by this fake broker
				}
				s.connection = with(row.before)
				s.produce(message(0, "a", "A"), message(1, "b", "B"))
				s.unforwarded()
				s.connection = with(row.after)
				run := s.start("one")
				s.waitCommitted(2)
				if diff := cmp.Diff([]string{"0:A", "1:B"}, s.texts(output)); diff != "" {
					t.Errorf("%s\noutcomes %v", diff, s.outcomes())
				}
				if err := run.stop(); err != nil {
					t.Error(err)
				}
				s.rewind()
				s.connection = with(row.before)
				s.produce(message(1, "c", "C"))
				s.start("one again")
				s.waitCommitted(3)
				if diff := cmp.Diff([]string{"0:A", "1:B", "1:C"}, s.texts(output)); diff != "" {
					t.Errorf("after a rewind: %s\noutcomes %v", diff, s.outcomes())
				}
			})
		})
	}
}
