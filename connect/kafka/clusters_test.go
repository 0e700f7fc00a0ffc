package kafka

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/internal/testkit"
)

func apartTopic() config.Topic {
	t := config.DefaultTopic()
	t.Input, t.Output, t.ConsumerGroup = "orders", "orders.clean", "orders-dedup"
	t.FenceTopic, t.DeadLetterTopic = "orders-dedup.fence", "orders.dlq"
	t.Delivery = config.DeliveryAtLeastOnce
	return t
}

// clustersOf connects as a process does, and closes the clients with the test.
func clustersOf(t *testing.T, k config.Kafka) Clusters {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	input, err := NewConnector(t.Context(), k, log)
	if err != nil {
		t.Fatal(err)
	}
	output, err := NewOutputConnector(t.Context(), k, input, log)
	if err != nil {
		t.Fatal(err)
	}
	if input == output {
		t.Fatal("one connector for two clusters")
	}
	var c Clusters
	if c.Input, err = kgo.NewClient(input.AdminOptions("test", log)...); err == nil {
		c.Output, err = kgo.NewClient(output.AdminOptions("test", log)...)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func as(user string) config.SASL {
	return config.SASL{Mechanism: config.SASLPlain, Username: user, Password: "secret"}
}

// Each cluster gives its own user the rights on what it has, and none on the rest.
func TestRightsAreAskedOfTheClusterThatHasTheTopic(t *testing.T) {
	topic := func(name string, operations ...kmsg.ACLOperation) (list []kfake.ACL) {
		for _, o := range operations {
			list = append(list, allow(kmsg.ACLResourceTypeTopic, name, o))
		}
		return list
	}
	const write, describe = kmsg.ACLOperationWrite, kmsg.ACLOperationDescribeConfigs
	_, brokers := testkit.FakeKafka(t, kfake.EnableSASL(), kfake.EnableACLs(),
		kfake.SeedTopics(1, "orders", "orders-dedup.fence"), kfake.User("PLAIN", "ann", "secret",
			slices.Concat(topic("orders", kmsg.ACLOperationRead),
				topic("orders-dedup.fence", kmsg.ACLOperationRead, write, describe),
				[]kfake.ACL{allow(kmsg.ACLResourceTypeGroup, "orders-dedup",
					kmsg.ACLOperationRead)})...))
	_, others := testkit.FakeKafka(t, kfake.EnableSASL(), kfake.EnableACLs(),
		kfake.SeedTopics(1, "orders.clean", "orders.dlq"),
		kfake.User("PLAIN", "bob", "secret", slices.Concat(topic("orders.clean", write, describe),
			topic("orders.dlq", write, describe))...),
		kfake.User("PLAIN", "carl", "secret", topic("orders.clean", write)...))
	for user, want := range map[string][]string{"bob": nil, "carl": {
		"topic orders.clean on the cluster of kafka.output: the Kafka ACLs do not allow " +
			"DescribeConfigs; " + rightsRemedy,
		"topic orders.dlq on the cluster of kafka.output: the Kafka ACLs do not allow Write, " +
			"DescribeConfigs; " + rightsRemedy,
	}} {
		clusters := clustersOf(t, config.Kafka{Brokers: brokers, SASL: as("ann"),
			Output: config.OutputCluster{Brokers: others, SASL: as(user)}})
		var got []string
		for _, err := range CheckRights(t.Context(), clusters, apartTopic(), nil) {
			got = append(got, err.Error())
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", user, diff)
		}
	}
}

func TestErrorsOfTheOtherClusterNameItsSettings(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	_, others := testkit.FakeKafka(t, kfake.EnableSASL()) // it hangs up on those it does not know
	clusters := clustersOf(t, config.Kafka{Brokers: brokers,
		Output: config.OutputCluster{Brokers: others, SASL: as("bob")}})
	err := clusters.Ping(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "kafka.output.brokers: ") {
		t.Errorf("a refused login: %v", err)
	}
	if err := clusters.PingOf(t.Context(), apartTopic(), "orders"); err != nil {
		t.Errorf("the input's cluster: %v", err)
	}
	if err := clusters.PingOf(t.Context(), apartTopic(), "orders.clean"); err == nil {
		t.Error("the other cluster was not asked")
	}
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = NewOutputConnector(t.Context(), config.Kafka{Output: config.OutputCluster{
		Brokers: others, TLS: config.TLS{Enabled: true, CAFile: text},
	}}, nil, slog.New(slog.DiscardHandler))
	if err == nil || !strings.HasPrefix(err.Error(), "kafka.output.tls.ca_file: ") {
		t.Errorf("a wrong file: %v", err)
	}
}
