package pipeline_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/pipeline"
)

// waitPast waits for at least n committed records.
func (r *rig) waitPast(n int64) {
	r.t.Helper()
	what := fmt.Sprintf("at least %d records committed", n)
	testkit.Eventually(r.t, 30*time.Second, what, func() bool { return r.committed() >= n })
}

// The second run begins in the middle of what lies below the fence.
func TestARewindThatIsInterruptedForwardsNothingTwice(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		const n = 2000
		s.produce(orders(n, 60)...)
		if err := s.startAndFinish("one", n); err != nil {
			t.Error(err)
		}
		s.rewind()
		s.batch = 10
		run := s.start("one")
		s.waitPast(100)
		if err := run.stop(); err != nil {
			t.Error(err)
		}
		if s.committed() >= n {
			t.Fatal("the rewind was not interrupted")
		}
		s.start("one")
		s.finish(n)
	})
}

// When the input's log was cut, the client goes back to its start within the same session. One
// lane: a second one that joins now would send the client back to its commit, where nothing is read
// again.
func TestALogThatWasCutForwardsNothingTwice(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		const n = 1000
		s.batch, s.lanes = 50, 1
		s.produce(orders(n, 61)...)
		s.start("one")
		s.waitCommitted(n)
		s.cluster.Fault(kfake.Fault{
			Keys: []kmsg.Key{kmsg.Fetch}, Topic: input, Partitions: []int32{1},
			Err: kerr.OffsetOutOfRange,
		})
		s.produce(message(1, "new", "new"))
		s.waitCommitted(n + 1)
		testkit.Eventually(t, 30*time.Second, "records that were read again", func() bool {
			return s.outcomes()["replay"] > 0
		})
		s.finish(n + 1)
	})
}

// The offsets of a deleted topic mean nothing for its successor.
func TestARecreatedInputStopsTheProcess(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		s.produce(orders(500, 62)...)
		run := s.start("one")
		s.waitCommitted(500)
		s.recreate(input, partitions)
		wantRecreated(t, run.wait())
		s.waitLogged("lane stopped", "the input topic was deleted or recreated",
			"reset the consumer group")
		before := s.texts(output)

		// The remedy: start again. The broker has dropped the old offsets with the topic.
		s.produce(message(0, "new-0", "new 0"), message(1, "id-0", "order 0"),
			message(2, "new-1", "new 1"))
		s.start("one")
		s.waitCommitted(3)
		want := slices.Sorted(slices.Values(append(before, "0:new 0", "2:new 1")))
		if diff := cmp.Diff(want, s.texts(output)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestADeletedInputStopsTheProcess(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		s.produce(orders(500, 63)...)
		run := s.start("one")
		s.waitCommitted(500)
		s.delete(input)
		wantRecreated(t, run.wait())
		s.waitLogged("lane stopped", "the input topic was deleted or recreated",
			"reset the consumer group")
	})
}

// A batch of the old topic that ends when the new one exists must not leave its offsets there:
// records of the new topic would be skipped. Brokers that know commits by topic ID refuse it: from
// 4.2 on, with transactions from 4.4 on, unless the transaction had the offsets before the topic
// was deleted. In all other cases the next session must notice whose offsets it was given.
func TestABatchOfADeletedInputSkipsNothingOfTheNewOne(t *testing.T) {
	for name, row := range map[string]struct {
		broker     []kfake.Opt
		longClaims bool // the transaction does not wait for them
		lands      func(transactional bool) bool
	}{
		"by name": {[]kfake.Opt{kfake.MaxVersions(kversion.V3_8_0())}, false, func(bool) bool {
			return true
		}},
		"by topic ID": {nil, false, func(transactional bool) bool {
			return transactional
		}},
		"by topic ID, long claims": {nil, true, func(bool) bool { return false }},
	} {
		t.Run(name, func(t *testing.T) {
			event(t, 1, func(t *testing.T, s *site) {
				store := &outage{Claimer: s.store}
				s.store, s.lanes = store, 1
				s.produce(orders(500, 64)...)
				run := s.start("one")
				s.waitCommitted(500)
				store.down.Store(true)
				var taken atomic.Int32
				s.network.tamper(kmsg.TxnOffsetCommit, func([]byte) error {
					taken.Add(1)
					return nil
				})
				s.produce(orders(500, 65)...)
				testkit.Eventually(t, 30*time.Second, "a batch that waits for its claims",
					func() bool {
						return s.counter("kdedup_claims_ambiguous_total") > 0
					})
				if s.transactional {
					testkit.Eventually(t, 30*time.Second, "offsets in a transaction", func() bool {
						return taken.Load() > 0
					})
				}
				if row.longClaims {
					s.waitTransactions(false)
				}
				s.recreate(input, partitions)
				s.produce(fresh(1200)...)
				store.down.Store(false)
				wantRecreated(t, run.wait())
				run = s.start("one")
				if row.lands(s.transactional) {
					wantRecreated(t, run.wait())
					s.forgetOffsets()
					s.start("one")
				}
				testkit.Eventually(t, 30*time.Second,
					"every record of the new topic on the clean topic", func() bool {
						return s.countClean(":new ") == 1200
					})
			}, row.broker...)
		})
	}
}

// fresh makes n records that have no copies.
func fresh(n int) (records []*kgo.Record) {
	for i := range n {
		records = append(records, message(i%partitions, fmt.Sprint("new-", i),
			fmt.Sprint("new ", i)))
	}
	return records
}

func wantRecreated(t *testing.T, err error) {
	t.Helper()
	if err == nil || !errors.Is(err, consumer.ErrInputReplaced) {
		t.Errorf("the process ended with %v", err)
	}
}

// forgetOffsets resets the group, as the log asks for.
func (s *site) forgetOffsets() {
	s.t.Helper()
	if _, err := kadm.NewClient(s.client).DeleteGroup(s.t.Context(), group); err != nil {
		s.t.Fatal(err)
	}
}

// countClean counts what the clean topic holds of a kind.
func (r *rig) countClean(kind string) (n int) {
	for _, text := range r.texts(output) {
		if strings.Contains(text, kind) {
			n++
		}
	}
	return n
}

func (s *site) delete(topic string) {
	s.t.Helper()
	if _, err := kadm.NewClient(s.client).DeleteTopic(s.t.Context(), topic); err != nil {
		s.t.Fatal(err)
	}
	s.client.PurgeTopicsFromClient(topic)
}

func (s *site) recreate(topic string, partitions int32) {
	s.t.Helper()
	s.delete(topic)
	s.create(topic, partitions)
}

func (s *site) create(topic string, partitions int32) {
	s.t.Helper()
	if _, err := kadm.NewClient(s.client).CreateTopic(
		s.t.Context(), partitions, 1, nil, topic,
	); err != nil {
		s.t.Fatal(err)
	}
}

// What a deleted output held is gone by the user's wish; what comes after is not.
func TestADeletedOutputHoldsUpTheLanesUntilItIsBack(t *testing.T) {
	for _, topic := range []string{output, fence, duplicates} {
		t.Run(topic, func(t *testing.T) {
			event(t, 1, func(t *testing.T, s *site) {
				s.produce(orders(500, 66)...)
				run := s.start("one")
				s.waitCommitted(500)
				s.delete(topic)
				s.produce(fresh(400)...)
				s.produce(message(0, "new-1", "new 1")) // a copy, for the duplicates topic
				s.waitLogged("lane failed, joining again", "UNKNOWN_TOPIC", "kdedup setup")
				testkit.Eventually(t, 30*time.Second, "a pipeline that is not ready", func() bool {
					return run.Ready() != nil
				})
				if err := s.cluster.CreateTopic(topic, partitions, nil); err != nil {
					t.Fatal(err)
				}
				s.waitCommitted(901)
				s.wantNew(400)
				testkit.Eventually(t, 30*time.Second, "a ready pipeline", func() bool {
					return run.Ready() == nil
				})
			})
		})
	}
}

// An output that is recreated at once is another topic for the client: the lane must not stop the
// process for it, nor count on what the old one acknowledged.
func TestARecreatedOutputFailsTheLaneOnce(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		s.produce(orders(500, 67)...)
		run := s.start("one")
		s.waitCommitted(500)
		s.recreate(output, partitions)
		s.produce(fresh(400)...)
		s.waitCommitted(900)
		s.wantNew(400)
		testkit.Eventually(t, 30*time.Second, "a ready pipeline", func() bool {
			return run.Ready() == nil
		})
	})
}

// A dead-letter topic is created again while its records wait for it: only another client finds the
// new one.
func TestARecreatedDeadLetterTopicTakesWhatWaitedForTheOldOne(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		s.policy.OnMissingID = pipeline.DeadLetter
		odd := func(text string) *kgo.Record {
			return &kgo.Record{Topic: input, Partition: 3, Value: []byte(text)}
		}
		s.produce(append(orders(100, 69), odd("first"))...)
		run := s.start("one")
		s.waitCommitted(101)
		s.delete(deadTopic)
		s.produce(append(fresh(100), odd("second"), message(3, "new-behind", "new behind"))...)
		s.waitLogged("a partition is held at a record")
		s.create(deadTopic, partitions)
		s.waitCommitted(203)
		s.wantNew(101)
		if diff := cmp.Diff([]string{"3:second"}, s.texts(deadTopic)); diff != "" {
			t.Error(diff)
		}
		testkit.Eventually(t, 30*time.Second, "a ready pipeline", func() bool {
			return run.Ready() == nil
		})
	})
}

// wantNew checks what fresh has made: each record once; with at_least_once at least.
func (s *site) wantNew(n int) {
	s.t.Helper()
	texts := slices.DeleteFunc(s.texts(output), func(text string) bool {
		return !strings.Contains(text, ":new ")
	})
	if s.transactional && len(texts) != n {
		s.t.Errorf("%d new records on the clean topic, want %d", len(texts), n)
	}
	if found := len(slices.Compact(texts)); found != n {
		s.t.Errorf("%d different new records on the clean topic, want %d", found, n)
	}
}
