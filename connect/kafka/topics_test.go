package kafka_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clusters runs a test on a fake Kafka and on a real one, with an input topic of three partitions.
func clusters(t *testing.T, test func(t *testing.T, client *kgo.Client, topic config.Topic)) {
	run := func(t *testing.T, brokers []string) {
		client, err := kgo.NewClient(kgo.SeedBrokers(brokers...),
			kgo.RecordPartitioner(kgo.ManualPartitioner()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		input := testkit.Topic(t, brokers, "orders", 3,
			map[string]string{"max.message.bytes": "2000000"})
		topic := config.DefaultTopic()
		topic.Input, topic.Output, topic.FenceTopic = input, input+".clean", input+".fence"
		topic.DuplicatesTopic, topic.DeadLetterTopic = input+".dup", input+".dlq"
		test(t, client, topic)
	}
	testkit.Kafkas(t, 1, run)
}

// setup returns what was said, with the name of the input shortened to IN.
func setup(t *testing.T, client *kgo.Client, topic config.Topic, dryRun bool) (said []string) {
	t.Helper()
	err := kafka.Setup(t.Context(), kafka.OneCluster(client), topic, dryRun, func(line string) {
		said = append(said, strings.ReplaceAll(line, topic.Input, "IN"))
	})
	if err != nil {
		t.Fatal(err)
	}
	return said
}

func texts(errs []error, topic config.Topic) []string {
	list := []string{}
	for _, err := range errs {
		list = append(list, strings.ReplaceAll(err.Error(), topic.Input, "IN"))
	}
	return list
}

func TestSetupCreatesWhatCheckMisses(t *testing.T) {
	clusters(t, func(t *testing.T, client *kgo.Client, topic config.Topic) {
		want := []string{
			"topic IN.clean does not exist; run: kdedup setup -c FILE",
			"topic IN.fence does not exist; run: kdedup setup -c FILE",
			"topic IN.dup does not exist; run: kdedup setup -c FILE",
			"topic IN.dlq does not exist; run: kdedup setup -c FILE",
		}
		if diff := cmp.Diff(
			want, texts(kafka.Check(t.Context(), kafka.OneCluster(client), topic), topic),
		); diff != "" {
			t.Error(diff)
		}
		created := []string{
			"topic IN.clean (3 partitions, 1 replica, max.message.bytes=2000000)",
			"topic IN.dup (3 partitions, 1 replica, max.message.bytes=2065536)",
			"topic IN.dlq (3 partitions, 1 replica, max.message.bytes=2065536)",
			"topic IN.fence (3 partitions, 1 replica, cleanup.policy=compact)",
		}
		prefixed := func(prefix string) (list []string) {
			for _, line := range created {
				list = append(list, prefix+line)
			}
			return list
		}
		if diff := cmp.Diff(prefixed("would create "), setup(t, client, topic, true)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(prefixed("created "), setup(t, client, topic, false)); diff != "" {
			t.Error(diff)
		}
		testkit.Eventually(t, topicsLimit, "no problem left", func() bool {
			return len(kafka.Check(t.Context(), kafka.OneCluster(client), topic)) == 0
		})
		exist := []string{"topic IN.clean exists", "topic IN.dup exists", "topic IN.dlq exists",
			"topic IN.fence exists"}
		if diff := cmp.Diff(exist, setup(t, client, topic, false)); diff != "" {
			t.Error(diff)
		}
		limits, err := kafka.LimitsOf(t.Context(), kafka.OneCluster(client), topic)
		if err != nil || limits.MaxBytes[topic.Output] != 2000000 ||
			limits.MaxBytes[topic.DeadLetterTopic] != 2065536 ||
			limits.Compacted[topic.Output] || !limits.Compacted[topic.FenceTopic] {
			t.Errorf("limits %+v, %v", limits, err)
		}
	})
}

func TestCheckRefusesTopicsThatWouldLoseRecords(t *testing.T) {
	clusters(t, func(t *testing.T, client *kgo.Client, topic config.Topic) {
		admin := kadm.NewClient(client)
		create := func(name string, partitions int32, configs map[string]*string) {
			t.Helper()
			if _, err := admin.CreateTopic(t.Context(), partitions, 1, configs, name); err != nil {
				t.Fatal(err)
			}
		}
		topic.DuplicatesTopic, topic.DeadLetterTopic = "", ""
		create(topic.Output, 2, nil)
		create(topic.FenceTopic, 1, map[string]*string{"cleanup.policy": kadm.StringPtr("delete"),
			"retention.ms": kadm.StringPtr("60000"), "retention.bytes": kadm.StringPtr("-1")})
		want := []string{
			"fence topic IN.fence has cleanup.policy=delete, retention.ms=60000 and " +
				"retention.bytes=-1: deleted fences make a rewind forward twice; set " +
				"cleanup.policy=compact or, where it cannot be compacted, retention.ms=-1 and " +
				"retention.bytes=-1",
		}
		waitCheck(t, client, topic, want)
	})
}

// The topics of a pipeline may have fewer partitions than its input, which was widened. That is
// told, and no problem. Setup adds to the fence topic, and with auto_setup to the others.
func TestTopicsAreWidenedWithTheirInput(t *testing.T) {
	clusters(t, func(t *testing.T, client *kgo.Client, topic config.Topic) {
		topic.Partitioner = config.PartitionerPreserve
		setup(t, client, topic, false)
		if _, err := kadm.NewClient(client).UpdatePartitions(t.Context(), 5,
			topic.Input); err != nil {
			t.Fatal(err)
		}
		output := "topic IN.clean has 3 partitions and IN has 5: records keep their partition " +
			"number, so those of the others wait: add partitions to IN.clean or set " +
			"partitioner: by_key"
		waitTold(t, client, topic, []string{output, "fence topic IN.fence has 3 partitions and " +
			"IN has 5: kdedup adds them, if it may, or run: kdedup setup -c FILE"})
		if problems := kafka.Check(t.Context(), kafka.OneCluster(client), topic); len(
			problems) > 0 {
			t.Errorf("they are problems: %v", problems)
		}
		setup(t, client, topic, false)
		waitTold(t, client, topic, []string{output})
		topic.Partitioner = config.PartitionerByKey
		waitTold(t, client, topic, nil)
		topic.Partitioner, topic.AutoSetup = config.PartitionerPreserve, true
		var said []string
		for range 2 { // as two lanes
			if err := kafka.Widen(t.Context(), kafka.OneCluster(client), topic,
				func(line string) {
					said = append(said, strings.ReplaceAll(line, topic.Input, "IN"))
				}); err != nil {
				t.Error(err)
			}
		}
		waitTold(t, client, topic, nil)
		want := []string{"added partitions of topic IN.clean: 3 to 5",
			"added partitions of topic IN.dup: 3 to 5", "added partitions of topic IN.dlq: 3 to 5"}
		if diff := cmp.Diff(want, said[:3]); diff != "" {
			t.Error(diff)
		}
	})
}

func waitTold(t *testing.T, client *kgo.Client, topic config.Topic, want []string) {
	t.Helper()
	testkit.Eventually(t, topicsLimit, "these remarks: "+strings.Join(want, "\n"), func() bool {
		compared, err := kafka.Compare(t.Context(), kafka.OneCluster(client), topic)
		var told []string
		for _, line := range compared.Told {
			told = append(told, strings.ReplaceAll(line, topic.Input, "IN"))
		}
		return err == nil && slices.Equal(want, told)
	})
}

const topicsLimit = 30 * time.Second

// waitCheck waits until the brokers agree on what was changed just now.
func waitCheck(t *testing.T, client *kgo.Client, topic config.Topic, want []string) {
	t.Helper()
	testkit.Eventually(t, topicsLimit, "these problems: "+strings.Join(want, "\n"), func() bool {
		got := kafka.Check(t.Context(), kafka.OneCluster(client), topic)
		return cmp.Equal(want, texts(got, topic))
	})
}

func TestAMissingInputIsNeverCreated(t *testing.T) {
	clusters(t, func(t *testing.T, client *kgo.Client, topic config.Topic) {
		topic.Input += ".none"
		want := "input topic " + topic.Input +
			" does not exist; create it first: its number of partitions is yours to choose"
		err := kafka.Setup(t.Context(), kafka.OneCluster(client), topic, false, func(line string) {
			t.Errorf("said %q", line)
		})
		if err == nil || err.Error() != want {
			t.Errorf("got %v", err)
		}
		if problems := kafka.Check(t.Context(), kafka.OneCluster(client),
			topic); len(problems) == 0 || problems[0].Error() != want {
			t.Errorf("got %v", problems)
		}
	})
}

func TestChecksEndWithTheirContext(t *testing.T) {
	client, err := kgo.NewClient(kgo.SeedBrokers("127.0.0.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if problems := kafka.Check(ctx, kafka.OneCluster(client),
		config.DefaultTopic()); len(problems) != 1 ||
		!strings.HasPrefix(problems[0].Error(), "list topics: ") {
		t.Errorf("got %v", problems)
	}
}

func TestATopicTellsWhatItTakes(t *testing.T) {
	clusters(t, func(t *testing.T, client *kgo.Client, topic config.Topic) {
		for name, c := range map[string]struct {
			configs map[string]*string
			want    kafka.Target
		}{
			"keeps": {map[string]*string{"retention.ms": kadm.StringPtr("60000"),
				"max.message.bytes": kadm.StringPtr("2000")},
				kafka.Target{Partitions: 2, MaxBytes: 2000, Retention: time.Minute}},
			"endless": {map[string]*string{"retention.ms": kadm.StringPtr("-1"),
				"max.message.bytes": kadm.StringPtr("2000")},
				kafka.Target{Partitions: 2, MaxBytes: 2000}},
			"compacts": {map[string]*string{"cleanup.policy": kadm.StringPtr("compact"),
				"max.message.bytes": kadm.StringPtr("2000")},
				kafka.Target{Partitions: 2, MaxBytes: 2000, Compacted: true}},
			"dates": {map[string]*string{"message.timestamp.type": kadm.StringPtr("LogAppendTime"),
				"max.message.bytes": kadm.StringPtr("2000")},
				kafka.Target{Partitions: 2, MaxBytes: 2000}},
		} {
			name = topic.Input + "." + name
			if _, err := kadm.NewClient(client).CreateTopic(
				t.Context(), 2, 1, c.configs, name,
			); err != nil {
				t.Fatal(err)
			}
			testkit.Eventually(t, topicsLimit, "topic "+name, func() bool {
				got, exists, err := kafka.TargetOf(t.Context(), client, name)
				return err == nil && exists && got == c.want
			})
		}
		if _, exists, err := kafka.TargetOf(
			t.Context(), client, topic.Input+".none",
		); exists || err != nil {
			t.Errorf("a topic that does not exist: %v, %v", exists, err)
		}
	})
}
