package kafka_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/internal/testkit"
)

// A broker answers that a topic is created before all brokers know it, itself included. What comes
// after setup in a script must find the topics.
func TestSetupReturnsWhenTheBrokersKnowTheTopics(t *testing.T) {
	cluster, brokers := testkit.FakeKafka(t)
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	topic := config.DefaultTopic()
	topic.Input = testkit.Topic(t, brokers, "orders", 3, nil)
	topic.Output, topic.FenceTopic = topic.Input+".clean", topic.Input+".fence"

	// answers that are still to come from a broker that knows no new topic
	var ignorant atomic.Int32
	cluster.ControlKey(int16(kmsg.CreateTopics), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		ignorant.Store(3)
		return nil, nil, false
	})
	cluster.ControlKey(int16(kmsg.Metadata), func(request kmsg.Request) (kmsg.Response, error,
		bool) {
		cluster.KeepControl()
		asked := request.(*kmsg.MetadataRequest).Topics
		if len(asked) == 0 || ignorant.Add(-1) < 0 {
			return nil, nil, false
		}
		response := request.ResponseKind().(*kmsg.MetadataResponse)
		for _, t := range asked {
			unknown := kmsg.NewMetadataResponseTopic()
			unknown.Topic, unknown.ErrorCode = t.Topic, kerr.UnknownTopicOrPartition.Code
			response.Topics = append(response.Topics, unknown)
		}
		return response, nil, true
	})
	setup(t, client, topic, false)
	if problems := kafka.Check(t.Context(), kafka.OneCluster(client), topic); len(problems) > 0 {
		t.Errorf("after setup: %v", problems)
	}
}

// Every process of a deployment may run setup before it starts.
func TestSetupsAtOnceDoNotDisturbEachOther(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	topic := config.DefaultTopic()
	topic.Input = testkit.Topic(t, brokers, "orders", 3, nil)
	topic.Output, topic.FenceTopic = topic.Input+".clean", topic.Input+".fence"
	var setups sync.WaitGroup
	for range 16 {
		setups.Go(func() {
			if err := kafka.Setup(t.Context(), kafka.OneCluster(client), topic, false,
				func(string) {}); err != nil {
				t.Error(err)
			}
		})
	}
	setups.Wait()
	if problems := kafka.Check(t.Context(), kafka.OneCluster(client), topic); len(problems) > 0 {
		t.Errorf("after setup: %v", problems)
	}
}
