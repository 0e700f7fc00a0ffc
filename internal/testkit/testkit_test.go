package testkit

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// outcome is what a test did when it called the function under test.
type outcome struct {
	Failed, Skipped bool
	Message         string
}

// recorder is a test that only notes how it ends.
type recorder struct {
	testing.TB
	ended outcome
}

var errEnded = errors.New("the test ended")

func (r *recorder) Helper()          {}
func (r *recorder) Name() string     { return "TestRecorded" }
func (r *recorder) Skip(args ...any) { r.end(outcome{Skipped: true, Message: fmt.Sprint(args...)}) }
func (r *recorder) Skipf(f string, a ...any) {
	r.end(outcome{Skipped: true, Message: fmt.Sprintf(f, a...)})
}
func (r *recorder) Fatalf(f string, a ...any) {
	r.end(outcome{Failed: true, Message: fmt.Sprintf(f, a...)})
}

func (r *recorder) end(o outcome) {
	r.ended = o
	panic(errEnded)
}

// record runs f as a test and says how that ended.
func record(t *testing.T, f func(testing.TB)) (o outcome) {
	t.Helper()
	r := &recorder{TB: t}
	defer func() {
		if ended := recover(); ended != nil && ended != errEnded {
			panic(ended)
		}
		o = r.ended
	}()
	f(r)
	return r.ended
}

func TestAMissingServerSkipsTheTestAndFailsItInCI(t *testing.T) {
	if testing.Short() {
		t.Skip("-short skips before the environment is looked at")
	}
	servers := map[string]func(testing.TB){
		KafkaEnv:       func(t testing.TB) { Kafka(t) },
		CassandraEnv:   func(t testing.TB) { Cassandra(t) },
		CassandraV1Env: func(t testing.TB) { CassandraV1(t) },
	}
	for variable, server := range servers {
		t.Setenv(variable, "")
		for ci, want := range map[string]outcome{"": {Skipped: true}, "true": {Failed: true}} {
			t.Run(variable+" with CI="+ci, func(t *testing.T) {
				t.Setenv("CI", ci)
				got := record(t, server)
				if !strings.Contains(got.Message, variable+" is not set") ||
					!strings.Contains(got.Message, "run make test") {
					t.Errorf("the message names not both the variable and the remedy: %q",
						got.Message)
				}
				got.Message = ""
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		}
	}
}

func TestServersComeFromTheEnvironment(t *testing.T) {
	if testing.Short() {
		t.Skip("-short skips before the environment is looked at")
	}
	t.Setenv(KafkaEnv, "127.0.0.1:1,127.0.0.1:2")
	t.Setenv(CassandraEnv, "127.0.0.1:3")
	t.Setenv(CassandraV1Env, "127.0.0.1:4")
	got := append(Kafka(t), Cassandra(t), CassandraV1(t))
	want := []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", "127.0.0.1:4"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
}

func TestTopicOnTheFakeKafka(t *testing.T) {
	_, brokers := FakeKafka(t)
	checkTopic(t, brokers)
}

func TestTopicOnTheRealKafka(t *testing.T) {
	checkTopic(t, Kafka(t))
}

func checkTopic(t *testing.T, brokers []string) {
	t.Helper()
	configs := map[string]string{"cleanup.policy": "compact", "max.message.bytes": "12345"}
	topic := Topic(t, brokers, "orders", 3, configs)
	if other := Topic(t, brokers, "orders", 1, nil); other == topic {
		t.Errorf("two topics are called %s", topic)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	details, err := admin.ListTopics(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(details[topic].Partitions); got != 3 || !strings.HasPrefix(topic, "orders-") {
		t.Errorf("topic %s has %d partitions", topic, got)
	}
	if diff := cmp.Diff(configs, topicConfigs(t, admin, topic, configs)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// topicConfigs reads those settings that are keys of like.
func topicConfigs(
	t *testing.T, admin *kadm.Client, topic string, like map[string]string,
) map[string]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	described, err := admin.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	for _, config := range described[0].Configs {
		if _, ok := like[config.Key]; ok {
			got[config.Key] = config.MaybeValue()
		}
	}
	return got
}

func TestKeyspaceIsAValidNameThatIsNeverRepeated(t *testing.T) {
	valid := regexp.MustCompile(`^[a-z][a-z0-9_]{0,47}$`)
	for _, name := range []string{"short", "Ünïcode / and more", strings.Repeat("long", 30)} {
		t.Run(name, func(t *testing.T) {
			first, second := Keyspace(t), Keyspace(t)
			if first == second {
				t.Errorf("%s twice", first)
			}
			if !valid.MatchString(first) {
				t.Errorf("%q is no name for a keyspace", first)
			}
		})
	}
}

func TestEventuallyWaitsForTheCondition(t *testing.T) {
	calls := 0
	got := record(t, func(t testing.TB) {
		Eventually(t, time.Minute, "a third call", func() bool { calls++; return calls == 3 })
	})
	if diff := cmp.Diff(outcome{}, got); diff != "" || calls != 3 {
		t.Fatalf("after %d calls, -want +got:\n%s", calls, diff)
	}
}

func TestEventuallySaysWhatDidNotHappen(t *testing.T) {
	t.Setenv("CI", "") // the timeout as it is
	got := record(t, func(t testing.TB) {
		Eventually(t, time.Millisecond, "a miracle", func() bool { return false })
	})
	want := outcome{Failed: true, Message: "waited 1ms in vain for a miracle"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
}
