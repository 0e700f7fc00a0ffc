package command

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

const exactApart = ordersTopic + "    duplicates_topic: orders.dup\n"

// setUpApart has exactly_once from one cluster onto another, in an embedded store.
func setUpApart(t *testing.T) (input, output []string, path string) {
	t.Helper()
	return setUpApartAs(t, exactApart)
}

func setUpApartAs(t *testing.T, topics string) (input, output []string, path string) {
	t.Helper()
	_, input = testkit.FakeKafka(t, kfake.SeedTopics(2, "orders"))
	_, output = testkit.FakeKafka(t)
	path = writeApart(t, input, output, topics)
	if code, text := kdedup(t.Context(), "setup", "-c", path, "--skip-self-test"); code != 0 {
		t.Fatal(text)
	}
	return input, output, path
}

// offsetsOf are the sum of a group's offsets beside a topic.
func offsetsOf(t *testing.T, brokers []string, group, topic string) (sum int64) {
	t.Helper()
	offsets, err := kadm.NewClient(testkit.KafkaClient(t, brokers)).FetchOffsets(t.Context(), group)
	if err != nil {
		return 0
	}
	for _, o := range offsets[topic] {
		sum += o.At
	}
	return sum
}

// What is forwarded, the fences and the group's offsets are one transaction of the output's
// cluster. That of the input only hears of the progress.
func TestExactlyOnceForwardsToAnotherCluster(t *testing.T) {
	input, output, path := setUpApart(t)
	if got := topicNames(t, input); !slices.Equal(got, []string{"orders"}) {
		t.Errorf("the input's cluster has the topics %v", got)
	}
	want := []string{"orders-dedup.fence", "orders.clean", "orders.dlq", "orders.dup"}
	if got := topicNames(t, output); !slices.Equal(got, want) {
		t.Errorf("the output's cluster has the topics %v", got)
	}
	if code, text := kdedup(t.Context(), "validate", "-c", path); code != 0 {
		t.Fatalf("validate: %d:\n%s", code, text)
	}
	produceKeys(t, input, "orders", "a", "b", "b", "c", "")
	runUntilRead(t, path, "forwarded", 3)
	produceKeys(t, input, "orders", "c", "d")
	runUntilRead(t, path, "forwarded", 1)
	if got := keysOf(t, output, "orders.clean"); !slices.Equal(got, []string{"a", "b", "c", "d"}) {
		t.Errorf("the clean topic has %v", got)
	}
	if got := keysOf(t, output, "orders.dup"); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("the duplicates topic has %v", got)
	}
	if got := keysOf(t, output, "orders.dlq"); len(got) != 1 {
		t.Errorf("the dead-letter topic has %v", got)
	}
	if got := offsetsOf(t, output, "orders-dedup", "orders-dedup.fence"); got != 7 {
		t.Errorf("the group is at %d on the cluster of the output", got)
	}
	if got := offsetsOf(t, input, "orders-dedup", "orders"); got != 7 {
		t.Errorf("the cluster of the input is told %d", got)
	}
	for id, want := range map[string]string{"b": "forwarded    yes\n", "d": "forwarded    yes\n"} {
		if code, text := kdedup(t.Context(), "id", "lookup", "-c", path, id); code != 0 ||
			!strings.Contains(text, want) {
			t.Errorf("id lookup %s: %d, want %q:\n%s", id, code, want, text)
		}
	}
}

// rewrite changes the file of a configuration.
func rewrite(t *testing.T, path, old, new string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), old, new, 1)
	if changed == string(text) {
		t.Fatalf("there is no %q in\n%s", old, text)
	}
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A pipeline that was at_least_once goes on exactly where it was, once its processes have ended. It
// does not go back, for at_least_once knows nothing of what was handled since.
func TestAtLeastOnceMovesToExactlyOnceOnAnotherCluster(t *testing.T) {
	_, input := testkit.FakeKafka(t, kfake.SeedTopics(2, "orders"))
	_, output := testkit.FakeKafka(t)
	path := writeApart(t, input, output, apartTopic)
	const atLeast, exactly = "delivery: at_least_once", "delivery: exactly_once"
	setup := func() {
		t.Helper()
		if code, text := kdedup(t.Context(), "setup", "-c", path, "--skip-self-test"); code != 0 {
			t.Fatal(text)
		}
	}
	setup()
	produceKeys(t, input, "orders", "a", "b", "b", "c")
	r := start(t, path)
	testkit.Eventually(t, time.Minute, "three are forwarded", func() bool {
		return strings.Contains(get(t, r.url()+"/metrics"),
			`outcome="forwarded",topic="orders"} 3`)
	})
	rewrite(t, path, atLeast, exactly)
	setup()
	code, text := kdedup(t.Context(), "validate", "-c", path)
	if code != 1 || !strings.Contains(text, "stop them all first") {
		t.Errorf("validate beside at_least_once: %d:\n%s", code, text)
	}
	rewrite(t, path, exactly, atLeast)
	r.stopsWell()

	rewrite(t, path, atLeast, exactly)
	produceKeys(t, input, "orders", "c", "d", "e")
	runUntilRead(t, path, "forwarded", 2)
	want := []string{"a", "b", "c", "d", "e"}
	if got := keysOf(t, output, "orders.clean"); !slices.Equal(got, want) {
		t.Errorf("the clean topic has %v", got)
	}
	rewrite(t, path, exactly, atLeast)
	for _, command := range []string{"validate", "run"} {
		code, text := kdedup(t.Context(), command, "-c", path)
		if code != 1 || !strings.Contains(text, "would be forwarded again") {
			t.Errorf("%s of at_least_once again: %d:\n%s", command, code, text)
		}
	}
}

// With the fence topic the brokers delete the offsets beside it. What the cluster of the input was
// told shows that there were some: nothing is forwarded twice unasked.
func TestALostFenceTopicOnTheOtherClusterIsToldAndGoesOnWhereItWas(t *testing.T) {
	input, output, path := setUpApart(t)
	produceKeys(t, input, "orders", "a", "b", "c", "d")
	runUntilRead(t, path, "forwarded", 4)
	admin := kadm.NewClient(testkit.KafkaClient(t, output))
	if _, err := admin.DeleteTopics(t.Context(), "orders-dedup.fence"); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.DeleteGroup(t.Context(), "orders-dedup"); err != nil {
		t.Fatal(err) // as brokers do with offsets of topics that are gone
	}
	if code, text := kdedup(t.Context(), "setup", "-c", path, "--skip-self-test"); code != 0 {
		t.Fatal(text)
	}
	for _, command := range []string{"validate", "run"} {
		code, text := kdedup(t.Context(), command, "-c", path)
		if code != 1 || !strings.Contains(text, "the fences are lost") ||
			!strings.Contains(text, "--adopt-offsets") {
			t.Errorf("%s: %d:\n%s", command, code, text)
		}
	}
	if code, text := kdedup(t.Context(), "setup", "-c", path, "--adopt-offsets"); code != 0 ||
		!strings.Contains(text, "adopted offset") {
		t.Fatalf("adopt: %d:\n%s", code, text)
	}
	produceKeys(t, input, "orders", "d", "e")
	runUntilRead(t, path, "forwarded", 1)
	want := []string{"a", "b", "c", "d", "e"}
	if got := keysOf(t, output, "orders.clean"); !slices.Equal(got, want) {
		t.Errorf("the clean topic has %v", got)
	}
}

// The claim log is where store.kafka.cluster says. A log on the other cluster knows nothing of what
// was handled, and is refused.
func TestTheClaimLogIsOnTheClusterThatItsSettingNames(t *testing.T) {
	_, input := testkit.FakeKafka(t, kfake.SeedTopics(2, "orders"))
	_, output := testkit.FakeKafka(t)
	path := writeApart(t, input, output, exactApart)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, data, _ := strings.Cut(string(text), "{type: embedded, embedded: {")
	data, _, _ = strings.Cut(data, "}}")
	rewrite(t, path, "{type: embedded, embedded: {"+data+"}}",
		"{type: kafka, kafka: {index: memory, cluster: output}}")
	setup := func() {
		t.Helper()
		if code, text := kdedup(t.Context(), "setup", "-c", path, "--skip-self-test"); code != 0 {
			t.Fatal(text)
		}
	}
	setup()
	if code, text := kdedup(t.Context(), "validate", "-c", path); code != 0 {
		t.Fatalf("validate: %d:\n%s", code, text)
	}
	if got := topicNames(t, input); !slices.Equal(got, []string{"orders"}) {
		t.Errorf("the input's cluster has the topics %v", got)
	}
	want := []string{"orders-dedup.claims", "orders-dedup.claims.scopes", "orders-dedup.fence",
		"orders.clean", "orders.dlq", "orders.dup"}
	if got := topicNames(t, output); !slices.Equal(got, want) {
		t.Errorf("the output's cluster has the topics %v", got)
	}
	produceKeys(t, input, "orders", "a", "b", "b")
	runUntilRead(t, path, "forwarded", 2)
	if code, text := kdedup(t.Context(), "id", "lookup", "-c", path, "b"); code != 0 ||
		!strings.Contains(text, "forwarded    yes\n") {
		t.Errorf("id lookup: %d:\n%s", code, text)
	}
	rewrite(t, path, "cluster: output", "cluster: input")
	setup()
	if got := topicNames(t, input); !slices.Contains(got, "orders-dedup.claims") {
		t.Errorf("the input's cluster has the topics %v now", got)
	}
	code, out := kdedup(t.Context(), "validate", "-c", path)
	if code != 1 || !strings.Contains(out, "the store knows nothing of what") {
		t.Errorf("validate with the log of the other cluster: %d:\n%s", code, out)
	}
}

// The group shares out the partitions of the fence topic: a running process widens it with the
// input, and reads what came there.
func TestNewPartitionsAreReadForTheOtherCluster(t *testing.T) {
	input, output, path := setUpApart(t)
	r := start(t, path)
	forwarded := func(n string) func() bool {
		return func() bool {
			return strings.Contains(get(t, r.url()+"/metrics"),
				`outcome="forwarded",topic="orders"} `+n+"\n")
		}
	}
	produceKeys(t, input, "orders", "a")
	testkit.Eventually(t, time.Minute, "a record of before", forwarded("1"))
	for brokers, topics := range map[string][]string{
		output[0]: {"orders.clean", "orders.dlq", "orders.dup"}, input[0]: {"orders"},
	} {
		admin := kadm.NewClient(testkit.KafkaClient(t, []string{brokers}))
		answers, err := admin.UpdatePartitions(t.Context(), 3, topics...)
		if err == nil {
			err = answers.Error()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	client := testkit.KafkaClient(t, input, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Partition: 2,
		Key: []byte("b")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 2*time.Minute, "a record of the new partition", forwarded("2"))
	r.stopsWell()
	if got := keysOf(t, output, "orders.clean"); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("the clean topic has %v", got)
	}
}
