package command

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/process"
)

// runDemo runs the demo's pipeline until the test ends, with orders coming in all the time.
func runDemo(t *testing.T, brokers []string, change func(*config.Config)) *process.Process {
	t.Helper()
	c := demoConfig(brokers, t.TempDir())
	change(&c)
	log := slog.New(slog.DiscardHandler)
	if err := connect.Setup(t.Context(), c, log, false, func(string) {}); err != nil {
		t.Fatal(err)
	}
	p, err := process.Wire(t.Context(), c, log, new(slog.LevelVar))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- p.Run(ctx, nil) }()
	go func() { ended <- newTraffic(1_000_000).produce(ctx, brokers, 1000) }()
	t.Cleanup(func() {
		stop()
		for range 2 {
			if err := <-ended; err != nil {
				t.Errorf("stop: %v", err)
			}
		}
		p.Close()
	})
	return p
}

func demoKafka(t *testing.T) []string {
	t.Helper()
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(demoPartitions, "orders"))
	return brokers
}

func TestMetricsFollowTheConventions(t *testing.T) {
	p := runDemo(t, demoKafka(t), func(*config.Config) {})
	testkit.Eventually(t, 2*time.Minute, "duplicates", func() bool {
		return outcomes(p)["duplicate"] > 0
	})
	problems, err := testutil.GatherAndLint(p.Registry())
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
}

// What a running process shows is in the document: families, labels and the values of labels that
// are a fixed list.
func TestMetricsAreDocumented(t *testing.T) {
	p := runDemo(t, demoKafka(t), func(*config.Config) {})
	testkit.Eventually(t, 2*time.Minute, "duplicates", func() bool {
		return outcomes(p)["duplicate"] > 0
	})
	text, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	families, err := p.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		_, section, found := strings.Cut(string(text), "\n### `"+f.GetName()+"`\n")
		switch {
		case !strings.HasPrefix(f.GetName(), "kdedup_"):
		case !found:
			t.Errorf("docs/metrics.md lacks %s", f.GetName())
		default:
			section, _, _ = strings.Cut(section, "\n##")
			checkSection(t, f, section, string(text))
		}
	}
}

func checkSection(t *testing.T, f *dto.MetricFamily, section, text string) {
	t.Helper()
	kind := strings.ToLower(f.GetType().String())
	if !strings.Contains(section, "** ("+kind+")\n") &&
		!strings.Contains(section, "** ("+kind+" by `") {
		t.Errorf("%s is documented as another type than %s", f.GetName(), kind)
	}
	for _, metric := range f.GetMetric() {
		for _, label := range metric.GetLabel() {
			if !strings.Contains(section, "`"+label.GetName()+"`") {
				t.Errorf("%s has the label %s, which is not documented", f.GetName(),
					label.GetName())
			}
			switch label.GetName() {
			case "outcome", "verdict", "result", "reason", "call":
				if !strings.Contains(text, "| `"+label.GetValue()+"` |") {
					t.Errorf("%s=%q of %s is not documented", label.GetName(), label.GetValue(),
						f.GetName())
				}
			}
		}
	}
}

// The client's plug-in counts only what it is told to.
func TestTheClientCountsRecordsAndBytes(t *testing.T) {
	p := runDemo(t, demoKafka(t), func(*config.Config) {})
	testkit.Eventually(t, 2*time.Minute, "duplicates", func() bool {
		return outcomes(p)["duplicate"] > 0
	})
	m := testkit.ReadMetrics(t, p.Registry())
	for _, name := range []string{
		"kdedup_kafka_client_fetch_records_total", "kdedup_kafka_client_produce_records_total",
		"kdedup_kafka_client_fetch_uncompressed_bytes_total",
		"kdedup_kafka_client_produce_compressed_bytes_total",
	} {
		if m.Value(name) == 0 {
			t.Errorf("%s counts nothing", name)
		}
	}
}

func TestThePartitionCanBeLeftOutOfTheMetrics(t *testing.T) {
	p := runDemo(t, demoKafka(t), func(c *config.Config) { c.Metrics.PerPartition = false })
	testkit.Eventually(t, 2*time.Minute, "one lag", func() bool {
		return len(testkit.ReadMetrics(t, p.Registry())["kdedup_consumer_lag"]) == 1
	})
	m := testkit.ReadMetrics(t, p.Registry())
	if len(m["kdedup_partition_duplicates_total"]) > 0 {
		t.Error("duplicates are counted by partition")
	}
	if !testkit.HasLabel(m["kdedup_consumer_lag"][0], "partition", "") {
		t.Errorf("the lag is that of one partition: %v", m["kdedup_consumer_lag"][0])
	}
}

// Both numbers are of the same batches: the member counts what it committed, the plan what it
// decided.
func TestEveryConsumedRecordHasAnOutcome(t *testing.T) {
	p := runDemo(t, demoKafka(t), func(*config.Config) {})
	equal := func() bool {
		m := testkit.ReadMetrics(t, p.Registry())
		consumed, outcomes := m.Value("kdedup_consumed_records_total"),
			m.Value("kdedup_records_total")
		return consumed > 2000 && consumed == outcomes
	}
	testkit.Eventually(t, 2*time.Minute, "as many outcomes as consumed records", equal)
}

func TestTheConfigurationsHashLeavesOutWhatDiffersOnPurpose(t *testing.T) {
	one := demoConfig([]string{"kafka:9092"}, "data")
	one.Kafka.SASL.Password = "first"
	same := demoConfig([]string{"kafka:9092"}, "data")
	same.Instance, same.Kafka.SASL.Password = "another", "second"
	other := demoConfig([]string{"kafka:9092"}, "data")
	other.Topics[0].TTL = time.Hour
	if process.ConfigHash(one) != process.ConfigHash(same) {
		t.Error("the instance or a secret changes the hash")
	}
	if process.ConfigHash(one) == process.ConfigHash(other) {
		t.Error("the TTL does not change the hash")
	}
}

// demoConfig is one whose claims are in the Kafka.
func demoConfig(brokers []string, directory string) config.Config {
	c := config.Default()
	c.Instance = "demo"
	c.Kafka.Brokers = brokers
	c.Store.Type = config.StoreKafka
	c.Store.Kafka.Path = directory
	c.Server.Listen = "127.0.0.1:0"
	c.Log.Level = slog.LevelWarn.String()
	t := config.DefaultTopic()
	t.Input, t.Output, t.ConsumerGroup = "orders", "orders.clean", "orders-dedup"
	t.DuplicatesTopic, t.DeadLetterTopic = "orders.duplicates", "orders.dlq"
	t.MessageID = config.MessageID{From: config.FromHeader, Name: orderIDHeader}
	c.Topics = []config.Topic{t}
	return c.Derived()
}
