package pipeline_test

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/internal/testkit"
)

func TestMovesOfLeadersAndCoordinatorsOnlyDelay(t *testing.T) {
	event(t, 3, func(t *testing.T, s *site) {
		const rounds, n = 8, 500
		s.start("one")
		for round := range rounds {
			s.produce(orders(n, uint64(30+round))...)
			s.cluster.ShufflePartitionLeaders()
			s.waitPast(int64(round*n + n/5))
			s.cluster.RehashCoordinators()
			s.waitPast(int64(round*n + n/2))
			s.cluster.ShufflePartitionLeaders()
			s.waitCommitted(int64(round*n + n))
		}
		s.checkClean(true)
	})
}

// Brokers that leave and come take their partitions and groups along.
func TestBrokersThatComeAndGoOnlyDelay(t *testing.T) {
	event(t, 3, func(t *testing.T, s *site) {
		s.start("one")
		s.produce(orders(500, 40)...)
		s.waitPast(100)
		if _, _, err := s.cluster.AddNode(7, 0); err != nil {
			t.Fatal(err)
		}
		s.cluster.ShufflePartitionLeaders()
		s.waitCommitted(500)
		s.produce(orders(500, 41)...)
		s.waitPast(600)
		if err := s.cluster.RemoveNode(1); err != nil {
			t.Fatal(err)
		}
		s.finish(1000)
	})
}

// Each request of a session is answered a few times as by a broker that has just lost or taken over
// a coordinator.
func TestCoordinatorErrorsOnlyDelay(t *testing.T) {
	both := []kmsg.Key{kmsg.FindCoordinator, kmsg.JoinGroup, kmsg.SyncGroup, kmsg.Heartbeat,
		kmsg.OffsetFetch}
	transactional := append(both, kmsg.InitProducerID, kmsg.TxnOffsetCommit, kmsg.EndTxn)
	plain := append(both, kmsg.OffsetCommit)
	for _, answer := range []*kerr.Error{
		kerr.NotCoordinator, kerr.CoordinatorLoadInProgress, kerr.CoordinatorNotAvailable,
		kerr.ConcurrentTransactions,
	} {
		t.Run(answer.Message, func(t *testing.T) {
			event(t, 1, func(t *testing.T, s *site) {
				keys := plain
				if s.transactional {
					keys = transactional
				}
				faults := make(map[kmsg.Key]*kfake.FaultHandle)
				for _, key := range keys {
					if answer == kerr.ConcurrentTransactions && key < kmsg.InitProducerID {
						continue // groups never answer so
					}
					faults[key] = s.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{key}, Err: answer,
						Count: 3})
				}
				s.produce(orders(1000, 50)...)
				s.start("one")
				s.waitCommitted(1000)
				for key, fault := range faults {
					testkit.Eventually(t, 30*time.Second, key.Name()+" that meets the fault",
						func() bool {
							return fault.Hits() > 0
						})
				}
				s.produce(orders(1000, 56)...)
				s.finish(2000)
			})
		})
	}
}

// The broker has committed when the connection breaks. The client asks again, and learns it.
func TestACommitWhoseAnswerIsLostIsAskedForAgain(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		var dropped int
		s.network.tamper(s.commitKey(), lost(5, &dropped))
		s.produce(orders(2000, 51)...)
		s.start("one")
		s.finish(2000)
		if n := s.network.count(&dropped); n != 5 {
			t.Errorf("%d answers were lost", n)
		}
	})
}

// commitKey is the request that makes a batch final.
func (s *site) commitKey() kmsg.Key {
	if s.transactional {
		return kmsg.EndTxn
	}
	return kmsg.OffsetCommit
}

// When the client has asked in vain as often as it may, nobody knows the outcome. The session is
// closed, and the next one starts where the group's offsets are: behind the batch.
func TestACommitOfUnknownOutcomeClosesTheSession(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		var dropped int
		s.connection = append(s.connection, kgo.RequestRetries(2))
		s.lanes = 1
		s.start("one")
		s.waitBalanced(1)
		s.network.tamper(s.commitKey(), lost(3, &dropped))
		s.produce(orders(2000, 52)...)
		s.finish(2000)
		if n := s.failures(); n == 0 {
			t.Error("no session was closed")
		}
		if s.transactional {
			s.waitLogged("lane failed, joining again", "end transaction")
		} else {
			s.waitLogged("lane failed, joining again", "commit offsets")
		}
	})
}

// UNKNOWN_SERVER_ERROR leaves it open, too.
func TestACommitAnsweredWithAnUnknownErrorDoublesNothing(t *testing.T) {
	for _, applied := range []string{"applied", "not applied"} {
		t.Run(applied, func(t *testing.T) {
			event(t, 1, func(t *testing.T, s *site) {
				if !s.transactional {
					t.Skip("there is no transaction")
				}
				answered := 0
				s.lanes = 1
				s.start("one")
				s.waitBalanced(1)
				if applied == "applied" {
					s.network.tamper(kmsg.EndTxn, func(answer []byte) error {
						if answered++; answered <= 3 {
							unknown := int16(-1)
							// after correlation, tags and throttle
							binary.BigEndian.PutUint16(answer[9:], uint16(unknown))
						}
						return nil
					})
				} else {
					s.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.EndTxn}, Count: 3})
				}
				s.produce(orders(2000, 53)...)
				s.finish(2000)
				s.waitLogged("lane failed, joining again", "end transaction")
			})
		})
	}
}

// The same answers that a broker gives to a producer that another one replaced, or whose
// transaction timed out.
func TestAFencedProducerJoinsAgain(t *testing.T) {
	for _, answer := range []*kerr.Error{
		kerr.ProducerFenced, kerr.InvalidProducerEpoch, kerr.InvalidTxnState,
		kerr.InvalidProducerIDMapping,
	} {
		t.Run(answer.Message, func(t *testing.T) {
			event(t, 1, func(t *testing.T, s *site) {
				if !s.transactional {
					t.Skip("there is no transaction")
				}
				s.lanes = 1
				s.start("one")
				s.waitBalanced(1)
				ends := s.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.EndTxn}, Err: answer,
					Count: 2})
				commits := s.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit},
					Err: answer, Count: 2})
				s.produce(orders(2000, 54)...)
				s.finish(2000)
				if ends.Hits() == 0 || commits.Hits() == 0 || s.failures() == 0 {
					t.Errorf("%d ends and %d commits were refused, %v failures", ends.Hits(),
						commits.Hits(), s.failures())
				}
				s.waitLogged("lane failed, joining again", answer.Message)
			})
		})
	}
}

// A transaction that takes longer than its timeout is ended by the broker, and its producer fenced.
func TestATransactionThatTimesOutIsRepeated(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		if !s.transactional {
			t.Skip("there is no transaction")
		}
		run := s.start("one")
		s.waitBalanced(2)
		over := make(chan struct{})
		s.cluster.ControlKey(int16(kmsg.EndTxn), func(kmsg.Request) (kmsg.Response, error, bool) {
			s.cluster.SleepControl(func() { <-over })
			return nil, nil, false
		})
		s.produce(orders(1000, 55)...)
		s.waitTransactions(true)
		s.waitTransactions(false)
		close(over)
		s.waitLogged("lane failed, joining again", "end transaction",
			"the transaction outlasted transaction_timeout")
		s.finish(1000)
		testkit.Eventually(t, 30*time.Second, "a ready pipeline", func() bool {
			return run.Ready() == nil
		})
	})
}

// A batch whose forwards take longer than most of the transaction's time is given back before the
// broker ends it.
func TestABatchThatTakesTooLongIsGivenBackInTime(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		if !s.transactional {
			t.Skip("there is no transaction")
		}
		s.start("one")
		s.waitBalanced(2)
		outage := s.cluster.Fault(kfake.Fault{
			Keys: produceKey, Topic: output, Partitions: []int32{2}, Err: kerr.NotEnoughReplicas,
			Count: -1,
		})
		s.produce(orders(1000, 55)...)
		s.waitHits(outage, 3)
		s.waitLogged("batch given back", "the brokers take longer than a batch has time")
		outage.Remove()
		s.finish(1000)
	})
}

// waitTransactions waits until there is a transaction that has begun, or none.
func (s *site) waitTransactions(open bool) {
	s.t.Helper()
	admin := kadm.NewClient(s.client)
	testkit.Eventually(s.t, 60*time.Second, fmt.Sprint("open transactions: ", open), func() bool {
		listed, err := admin.ListTransactions(s.t.Context(), nil, []string{"Ongoing"})
		return err == nil && (len(listed) > 0) == open
	})
}
