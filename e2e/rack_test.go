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
	inRack := func(rack string) map[string]string {
		return map[string]string{"broker.rack": rack, "replica.selector.class": "org.apache." +
			"kafka.common.replica.RackAwareReplicaSelector"}
	}
	first := broker(t, nil, inRack("a"))
	broker(t, first, inRack("b"))
	return []string{first.Addr()}
}

// broker starts one that joins the first one, or is the first one.
func broker(t *testing.T, first *servers.Server, config map[string]string) *servers.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	s, err := servers.StartKafka(ctx, servers.KafkaOptions{
		Dir: filepath.Join(t.TempDir(), "kafka"), Joins: first, Heap: "512m", Config: config,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
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
	d.waitLed(topic, replicas[0], len(replicas), func(others kadm.TopicsSet) {
		_, _ = d.admin.ElectLeaders(d.t.Context(), kadm.ElectPreferredReplica, others)
	})
}

// waitLed returns when a broker leads all partitions of a topic, which have as many replicas that
// are in sync. It has something done about others.
func (d *deployment) waitLed(topic string, by int32, inSync int, do func(others kadm.TopicsSet)) {
	d.t.Helper()
	what := fmt.Sprintf("%d replicas of each partition, led by %d", inSync, by)
	testkit.Eventually(d.t, time.Minute, what, func() bool {
		details, err := d.admin.ListTopics(d.t.Context(), topic)
		if err != nil || len(details[topic].Partitions) != partitions {
			return false
		}
		var others kadm.TopicsSet
		for _, p := range details[topic].Partitions {
			if p.Leader != by || len(p.ISR) != inSync {
				others.Add(topic, p.Partition)
			}
		}
		if len(others) > 0 {
			do(others)
		}
		return len(others) == 0
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
