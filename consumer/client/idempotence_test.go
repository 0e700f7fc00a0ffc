package client

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/kdedup/kdedup/internal/testkit"
)

// Some brokers have no idempotent producers (Confluent Freight, Redpanda with enable_idempotence
// off). A request that they refuse is sent again, before the ones behind it.
func TestWithoutIdempotentProducersTheOrderHolds(t *testing.T) {
	hiding := kversion.Stable()
	hiding.SetMaxKeyVersion(int16(kmsg.InitProducerID), -1)
	for name, c := range map[string]struct {
		opts    []kfake.Opt
		refuses bool
		options int
	}{
		"ordinary brokers":              {nil, false, 0},
		"the request is not there":      {[]kfake.Opt{kfake.MaxVersions(hiding)}, false, 1},
		"the request is there, refused": {nil, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, brokers := testkit.FakeKafka(t,
				append(c.opts, kfake.SeedTopics(1, "clean"))...)
			if c.refuses {
				cluster.ControlKey(int16(kmsg.InitProducerID),
					func(r kmsg.Request) (kmsg.Response, error, bool) {
						cluster.KeepControl()
						answer := r.ResponseKind().(*kmsg.InitProducerIDResponse)
						answer.ErrorCode = kerr.UnsupportedVersion.Code
						return answer, nil, true
					})
			}
			opts, err := withoutIdempotence(t.Context(), nil,
				func() []kgo.Opt { return []kgo.Opt{kgo.SeedBrokers(brokers...)} })
			if err != nil || len(opts) != c.options {
				t.Errorf("%d options, %v", len(opts), err)
			}
			refuseSecondProduce(cluster)
			client := testkit.KafkaClient(t, brokers, append(opts, kgo.MaxBufferedRecords(1000),
				kgo.ProducerBatchMaxBytes(512),
				kgo.ProducerBatchCompression(kgo.NoCompression()))...)
			want := make([]string, 100)
			for i := range want {
				want[i] = fmt.Sprintf("%0400d", i)
				client.Produce(t.Context(), &kgo.Record{Topic: "clean", Value: []byte(want[i])},
					func(_ *kgo.Record, err error) {
						if err != nil {
							t.Error(err)
						}
					})
			}
			if err := client.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			var got []string
			testkit.ReadCommitted(t, "clean", func(r *kgo.Record) {
				got = append(got, string(r.Value))
			}, kgo.SeedBrokers(brokers...))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// refuseSecondProduce answers the second request as a broker does that has just lost a partition.
func refuseSecondProduce(cluster *kfake.Cluster) {
	n := 0
	cluster.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if n++; n != 2 {
			return nil, nil, false
		}
		answer := r.ResponseKind().(*kmsg.ProduceResponse)
		for _, topic := range r.(*kmsg.ProduceRequest).Topics {
			refused := kmsg.NewProduceResponseTopic()
			refused.Topic, refused.TopicID = topic.Topic, topic.TopicID
			for _, p := range topic.Partitions {
				partition := kmsg.NewProduceResponseTopicPartition()
				partition.Partition = p.Partition
				partition.ErrorCode = kerr.NotLeaderForPartition.Code
				refused.Partitions = append(refused.Partitions, partition)
			}
			answer.Topics = append(answer.Topics, refused)
		}
		return answer, nil, true
	})
}
