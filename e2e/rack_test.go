package e2e_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// All partitions are led by a broker in another rack. A process that is killed and started again
// reads from the replicas in its own, with the fences and in transactions as ever.
func TestAProcessReadsFromTheReplicaInItsRack(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	d := prepare(t, place{brokers: twoRacks(t), store: embeddedStore(t)}, exactlyOnce,
		"batch_records: 500")
	d.replicate(d.input, 1, 2)
	d = d.at(place{brokers: d.brokers, store: embeddedStore(t),
		kafka: fmt.Sprintf("{brokers: %q, rack: b}", d.brokers[0])})
	d.command("setup", "--skip-self-test")
	d.produce(50_000, 41)
	one := d.start("one")
	d.waitFor(0.2)
	one.kill()
	one = d.start("one")
	d.waitFor(1)
	d.mustBeClean()
	leader, follower := one.fetched("1"), one.fetched("2")
	t.Logf("%.0f bytes from the leader, %.0f from the follower in the rack", leader, follower)
	if leader > follower/10 {
		t.Errorf("%.0f bytes came from the leader, in another rack, and %.0f from the follower",
			leader, follower)
	}
}

// twoRacks starts a broker in each. The second one takes no topic that is not given to it.
func twoRacks(t *testing.T) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var first *servers.Server
	for _, rack := range []string{"a", "b"} {
		s, err := servers.StartKafka(ctx, servers.KafkaOptions{
			Dir: filepath.Join(t.TempDir(), "kafka"), Joins: first, Heap: "512m",
			Config: map[string]string{"broker.rack": rack, "replica.selector.class": "org.apache." +
				"kafka.common.replica.RackAwareReplicaSelector"},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Stop(); err != nil {
				t.Error(err)
			}
		})
		if first == nil {
			first = s
		}
	}
	return []string{first.Addr()}
}

// replicate gives a topic its replicas on brokers, of which the first one shall lead, and waits for
// them.
func (d *deployment) replicate(topic string, replicas ...int32) {
	d.t.Helper()
	request := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	t := kmsg.NewAlterPartitionAssignmentsRequestTopic()
	t.Topic = topic
	for p := range int32(partitions) {
		part := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
		part.Partition, part.Replicas = p, replicas
		t.Partitions = append(t.Partitions, part)
	}
	request.Topics = append(request.Topics, t)
	if _, err := request.RequestWith(d.t.Context(), d.client); err != nil {
		d.t.Fatal(err)
	}
	testkit.Eventually(d.t, time.Minute, "a replica of each partition", func() bool {
		details, err := d.admin.ListTopics(d.t.Context(), topic)
		if err != nil {
			return false
		}
		for _, p := range details[topic].Partitions {
			if len(p.ISR) != len(replicas) || p.Leader != replicas[0] {
				var set kadm.TopicsSet
				set.Add(topic, p.Partition)
				_, _ = d.admin.ElectLeaders(d.t.Context(), kadm.ElectPreferredReplica, set)
				return false
			}
		}
		return len(details[topic].Partitions) == partitions
	})
}

// fetched is how many bytes of records came from a broker.
func (i *instance) fetched(node string) (bytes float64) {
	for _, m := range i.scrape()["kdedup_kafka_client_fetch_compressed_bytes_total"].GetMetric() {
		for _, label := range m.Label {
			if label.GetName() == "node_id" && label.GetValue() == node {
				bytes += m.GetCounter().GetValue()
			}
		}
	}
	return bytes
}
