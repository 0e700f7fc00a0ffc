package brokers_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/internal/brokers"
	"github.com/kdedup/kdedup/internal/testkit"
)

// Kubernetes waits 30 seconds for a pod, and a rolling upgrade for each of its pods.
func TestABrokerThatIsAwayHoldsUpNoStop(t *testing.T) {
	cluster, seeds := testkit.FakeKafka(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	joined := make(chan struct{}, 1)
	client, err := kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.ConsumerGroup("group"),
		kgo.ConsumeTopics("orders"), kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) {
			joined <- struct{}{}
		}))
	if err != nil {
		t.Fatal(err)
	}
	<-joined
	asked, over := make(chan struct{}), make(chan struct{})
	cluster.ControlKey(int16(kmsg.LeaveGroup), func(kmsg.Request) (kmsg.Response, error, bool) {
		close(asked)
		cluster.SleepControl(func() { <-over })
		return nil, nil, false
	})
	defer close(over)
	begin := time.Now()
	brokers.Leave(client)
	<-asked // in time for a member that the coordinator answers
	if took := time.Since(begin); took > 15*time.Second {
		t.Errorf("the stop took %v", took)
	}
}
