package client

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/internal/testkit"
)

// A group that starts at the end must not skip what arrives before its first commit, so its start
// is committed at once, and only where there is no commit yet.
func TestPinStartCommitsTheEndOnce(t *testing.T) {
	testkit.Kafkas(t, 3, func(t *testing.T, brokers []string) {
		topic, fences := testkit.Topic(t, brokers, "orders", 3, nil),
			testkit.Topic(t, brokers, "fences", 3, nil)
		client := testkit.KafkaClient(t, brokers)
		admin := kadm.NewClient(client)
		produce := func(partition int32, n int) {
			t.Helper()
			for range n {
				if err := client.ProduceSync(
					t.Context(), &kgo.Record{Topic: topic, Partition: partition},
				).FirstErr(); err != nil {
					t.Fatal(err)
				}
			}
		}
		pinned := func() map[int32]int64 {
			t.Helper()
			if err := PinStart(
				t.Context(), client, topic+"-group", topic, fences, Earlier{},
			); err != nil {
				t.Fatal(err)
			}
			offsets, err := admin.FetchOffsets(t.Context(), topic+"-group")
			if err != nil {
				t.Fatal(err)
			}
			at := make(map[int32]int64)
			offsets.Each(func(o kadm.OffsetResponse) { at[o.Partition] = o.At })
			return at
		}
		produce(0, 5)
		produce(1, 2)
		if diff := cmp.Diff(map[int32]int64{0: 5, 1: 2, 2: 0}, pinned()); diff != "" {
			t.Error(diff)
		}
		produce(0, 1)
		if diff := cmp.Diff(map[int32]int64{0: 5, 1: 2, 2: 0}, pinned()); diff != "" {
			t.Errorf("the second start moved: %s", diff)
		}
	})
}

// The first request to a new cluster meets a coordinator that is still being made.
func TestPinStartWaitsForTheCoordinator(t *testing.T) {
	cluster, brokers := testkit.FakeKafka(t)
	topic, fences := testkit.Topic(t, brokers, "orders", 1, nil),
		testkit.Topic(t, brokers, "fences", 1, nil)
	refusals := 3
	cluster.ControlKey(int16(kmsg.FindCoordinator),
		func(request kmsg.Request) (kmsg.Response, error, bool) {
			if refusals == 0 {
				return nil, nil, false
			}
			refusals--
			cluster.KeepControl()
			answer := request.ResponseKind().(*kmsg.FindCoordinatorResponse)
			answer.ErrorCode = kerr.CoordinatorNotAvailable.Code
			for _, key := range request.(*kmsg.FindCoordinatorRequest).CoordinatorKeys {
				c := kmsg.NewFindCoordinatorResponseCoordinator()
				c.Key, c.ErrorCode = key, kerr.CoordinatorNotAvailable.Code
				answer.Coordinators = append(answer.Coordinators, c)
			}
			return answer, nil, true
		})
	client := testkit.KafkaClient(t, brokers, kgo.RequestRetries(0))
	if err := PinStart(t.Context(), client, "group", topic, fences, Earlier{}); err != nil {
		t.Error(err)
	}
	if refusals > 0 {
		t.Errorf("%d refusals were not met", refusals)
	}
}
