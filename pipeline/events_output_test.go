package pipeline_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/internal/testkit"
)

var produceKey = []kmsg.Key{kmsg.Produce}

// waitHits waits until a fault has answered n requests.
func (s *site) waitHits(f *kfake.FaultHandle, n int) {
	s.t.Helper()
	testkit.Eventually(s.t, 30*time.Second, "requests that meet the fault", func() bool {
		return f.Hits() >= n
	})
}

// The client repeats what the broker will take later; the batch waits inside the client.
func TestAnOutputOutageDelaysTheBatch(t *testing.T) {
	for _, answer := range []*kerr.Error{
		kerr.NotEnoughReplicas, kerr.NotEnoughReplicasAfterAppend, kerr.RequestTimedOut,
		kerr.LeaderNotAvailable, kerr.KafkaStorageError,
	} {
		t.Run(answer.Message, func(t *testing.T) {
			event(t, 1, func(t *testing.T, s *site) {
				outage := s.cluster.Fault(kfake.Fault{Keys: produceKey, Topic: output, Err: answer,
					Count: -1})
				s.produce(orders(1000, 20)...)
				s.start("one")
				s.waitHits(outage, 5)
				if n := total(s.outcomes()); n > 0 {
					t.Errorf("%d records were committed without their forwards", n)
				}
				outage.Remove()
				s.finish(1000)
				if n := s.failures(); n > 0 {
					t.Errorf("the lanes failed %v times", n)
				}
			})
		})
	}
}

// One partition holds up the lane that has it; the other lane goes on.
func TestAnOutageOfOneOutputPartitionHoldsUpOneLane(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		s.start("one")
		s.waitBalanced(2)
		outage := s.cluster.Fault(kfake.Fault{
			Keys: produceKey, Topic: output, Partitions: []int32{0}, Err: kerr.NotEnoughReplicas,
			Count: -1,
		})
		s.produce(orders(1000, 21)...)
		s.waitHits(outage, 3)
		testkit.Eventually(t, 30*time.Second, "records of the other lane", func() bool {
			return total(s.outcomes()) > 300
		})
		outage.Remove()
		s.finish(1000)
	})
}

// An answer that the client does not repeat fails the lane, which says why and joins again.
func TestARefusedForwardFailsTheLaneUntilItIsTaken(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		refusal := s.cluster.Fault(kfake.Fault{
			Keys: produceKey, Topic: output, Partitions: []int32{1}, Err: kerr.PolicyViolation,
			Count: -1,
		})
		s.produce(orders(1000, 22)...)
		run := s.start("one")
		testkit.Eventually(t, 30*time.Second, "a pipeline that is not ready", func() bool {
			return s.failures() >= 3 && run.Ready() != nil
		})
		s.waitLogged("lane failed, joining again", "to orders.clean[1]: POLICY_VIOLATION")
		refusal.Remove()
		s.waitCommitted(1000)
		// at_least_once repeats what other partitions took of the refused batches
		s.checkClean(s.transactional)
		testkit.Eventually(t, 30*time.Second, "a ready pipeline", func() bool {
			return run.Ready() == nil
		})
	})
}

// What is added behind a refused batch must not be written before that was sent again.
func TestWhatIsBehindARefusedRecordWaits(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		s.batch = 5000
		refusal := s.cluster.Fault(kfake.Fault{
			Keys: produceKey, Topic: output, Partitions: []int32{0}, Err: kerr.InvalidRecord,
			Count: 1,
		})
		s.produce(orders(5000, 25)...)
		s.start("one")
		s.finish(5000)
		if n := refusal.Hits(); n != 1 || s.failures() > 0 {
			t.Errorf("%d refusals, the lanes failed %v times", n, s.failures())
		}
	})
}

// A produce answer that is lost leaves it open whether the records were written. The client sends
// them again with the same sequence numbers, and the broker knows them.
func TestLostProduceAnswersDoubleNothing(t *testing.T) {
	event(t, 1, func(t *testing.T, s *site) {
		var dropped int
		s.network.tamper(kmsg.Produce, lost(6, &dropped))
		s.produce(orders(1000, 23)...)
		s.start("one")
		s.finish(1000)
		if n := s.network.count(&dropped); n != 6 {
			t.Errorf("%d answers were lost", n)
		}
	})
}

// Quotas: the broker answers and asks the client to pause. In an answer to produce the pause stands
// at the end, in one to fetch at the beginning.
func TestThrottlingOnlyDelays(t *testing.T) {
	const millis = 150
	event(t, 1, func(t *testing.T, s *site) {
		var produces, fetches int
		s.network.tamper(kmsg.Produce, func(answer []byte) error {
			produces++
			binary.BigEndian.PutUint32(answer[len(answer)-5:], millis)
			return nil
		})
		s.network.tamper(kmsg.Fetch, func(answer []byte) error {
			fetches++
			binary.BigEndian.PutUint32(answer[5:], millis)
			return nil
		})
		throttled := &throttles{}
		s.connection = append(s.connection, throttled.hook())
		s.produce(orders(1000, 24)...)
		s.start("one")
		s.finish(1000)
		if s.network.count(&produces) == 0 || s.network.count(&fetches) == 0 ||
			throttled.seen.Load() == 0 {
			t.Errorf("%d produces and %d fetches, throttled %d times", produces, fetches,
				throttled.seen.Load())
		}
		if n := s.failures(); n > 0 {
			t.Errorf("the lanes failed %v times", n)
		}
	})
}
