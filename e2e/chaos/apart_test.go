package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// apart is how a storm has two clusters of Kafka: the input is on one, and what is forwarded on the
// other. Each broker, and each process's way to it, has faults of its own. So one is away while the
// other is there, or both are, and processes see one of them alone.
type apart struct {
	two    bool
	claims string // which cluster has a claim log in Kafka
}

// drawApart is by the seed alone, or as CHAOS_APART says. Storms with Cassandra have one cluster
// unless told otherwise: two brokers and three nodes are much for one machine.
func drawApart(t *testing.T, seed uint64, store string) apart {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 7))
	a := apart{two: random.IntN(3) == 0 && store == inKafka,
		claims: []string{"input", "output"}[random.IntN(2)]}
	switch text := os.Getenv("CHAOS_APART"); text {
	case "":
	case "0", "1":
		a.two = text == "1"
	default:
		t.Fatalf("CHAOS_APART: %q is neither 0 nor 1", text)
	}
	return a
}

func (a apart) String() string {
	if !a.two {
		return "one cluster"
	}
	return "two clusters, a claim log on that of the " + a.claims
}

// forwards is the broker that has what kdedup writes.
func (w *world) forwards() *servers.Server {
	if w.output != nil {
		return w.output
	}
	return w.kafka
}

// brokerOf is that which a topic is on.
func (s *storm) brokerOf(topic string) *servers.Server {
	if topic == s.input {
		return s.world.kafka
	}
	return s.world.forwards()
}

// adminOf asks the broker that a topic is on.
func (s *storm) adminOf(topic string) *kadm.Client {
	if topic == s.input || s.world.output == nil {
		return s.admin
	}
	return s.outputs
}

// grouped is the topic beside which the group's offsets stand, which are on its cluster.
func (s *storm) grouped() string {
	if s.world.output != nil && s.delivery == exactlyOnce {
		return s.group() + ".fence"
	}
	return s.input
}

// kafkaSection is the configuration of a process: each reaches each broker by a proxy of its own.
func (s *storm) kafkaSection(process int) string {
	input := s.world.network.kafka[process].route.Listen
	if s.world.output == nil {
		return fmt.Sprintf("kafka: {brokers: [%q]}", input)
	}
	return fmt.Sprintf("kafka: {brokers: [%q], output: {brokers: [%q]}}", input,
		s.world.network.output[process].route.Listen)
}

// inKafkaSection has the claims in a log on the cluster that was drawn.
func (s *storm) inKafkaSection(process int, shared string) string {
	cluster := ""
	if s.world.output != nil {
		cluster = fmt.Sprintf("cluster: %s, ", s.apart.claims)
	}
	return fmt.Sprintf("store: {type: kafka, kafka: {%spath: %q}, keepers: %s}", cluster,
		s.indexes(process), shared)
}

func (s *storm) askOutputs(t *testing.T) {
	if s.world.output != nil {
		s.outputs = kadm.NewClient(testkit.KafkaClient(t, []string{s.world.output.Addr()}))
	}
}

func TestTheSeedDrawsHowManyClustersAStormHas(t *testing.T) {
	t.Setenv("CHAOS_APART", "")
	counts := make(map[apart]int)
	for seed := range uint64(60) {
		a := drawApart(t, seed, inKafka)
		if a != drawApart(t, seed, inKafka) {
			t.Errorf("seed %d draws now this, now that", seed)
		}
		if drawApart(t, seed, inCassandra).two {
			t.Errorf("seed %d has two brokers beside Cassandra", seed)
		}
		counts[a]++
	}
	if len(counts) != 4 {
		t.Errorf("60 seeds draw only %v", counts)
	}
	t.Setenv("CHAOS_APART", "1")
	if !drawApart(t, 1, inCassandra).two || !drawApart(t, 2, inCassandra).two {
		t.Error("CHAOS_APART=1 does not mean two clusters")
	}
}
