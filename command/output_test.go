package command

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/kdedup/kdedup/internal/testkit"
)

// writeApart makes a configuration whose output is on another cluster.
func writeApart(t *testing.T, input, output []string, topics string) (path string) {
	t.Helper()
	path = write(t, input, topics)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	apart := strings.Replace(string(text), "]}\nstore:",
		"], output: {brokers: ["+output[0]+"]}}\nstore:", 1)
	if err := os.WriteFile(path, []byte(apart), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const apartTopic = ordersTopic + "    delivery: at_least_once\n    duplicates_topic: orders.dup\n"

// topicNames are those of a cluster, without its own.
func topicNames(t *testing.T, brokers []string) []string {
	t.Helper()
	topics, err := kadm.NewClient(testkit.KafkaClient(t, brokers)).ListTopics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(slices.Values(topics.Names()))
}

// keysOf reads the keys of a topic, as far as it is written.
func keysOf(t *testing.T, brokers []string, topic string) (keys []string) {
	t.Helper()
	testkit.ReadCommitted(t, topic, func(r *kgo.Record) { keys = append(keys, string(r.Key)) },
		kgo.SeedBrokers(brokers...))
	return slices.Sorted(slices.Values(keys))
}

// Setup, validate, backfill, run, the look-up, the page, report and redrive, on two clusters.
func TestWhatIsForwardedGoesToAnotherCluster(t *testing.T) {
	_, input := testkit.FakeKafka(t, kfake.SeedTopics(2, "orders"))
	_, output := testkit.FakeKafka(t)
	path := writeApart(t, input, output, apartTopic)
	code, text := kdedup(t.Context(), "validate", "-c", path)
	for _, want := range []string{
		"✓ Kafka answers, on the cluster of the inputs and on that of kafka.output",
		"topics[0]: topic orders.clean does not exist on the cluster of kafka.output; run: kdedup",
		"topics[0]: topic orders-dedup.fence does not exist; run: kdedup setup -c",
	} {
		if code != 1 || !strings.Contains(text, want) {
			t.Errorf("validate before setup: %d, want 1 with %q:\n%s", code, want, text)
		}
	}
	code, text = kdedup(t.Context(), "setup", "-c", path, "--skip-self-test")
	if code != 0 || !regexp.MustCompile(
		`(?m)^created topic orders\.clean \(2 partitions, .* on the cluster of kafka\.output$`,
	).MatchString(text) {
		t.Fatalf("setup: %d:\n%s", code, text)
	}
	if got := topicNames(t, input); !slices.Equal(got, []string{"orders", "orders-dedup.fence"}) {
		t.Errorf("the input's cluster has the topics %v", got)
	}
	want := []string{"orders.clean", "orders.dlq", "orders.dup"}
	if got := topicNames(t, output); !slices.Equal(got, want) {
		t.Errorf("the output's cluster has the topics %v", got)
	}
	if code, text := kdedup(t.Context(), "validate", "-c", path); code != 0 {
		t.Fatalf("validate: %d:\n%s", code, text)
	}

	produceKeys(t, output, "orders.clean", "a")
	code, text = kdedup(t.Context(), "backfill", "-c", path)
	if code != 0 || !regexp.MustCompile(` claimed +1`).MatchString(text) {
		t.Fatalf("backfill: %d:\n%s", code, text)
	}
	produceKeys(t, input, "orders", "a", "b", "b", "c", "")
	r := start(t, path)
	url := r.url()
	testkit.Eventually(t, time.Minute, "five records are handled", func() bool {
		metrics := get(t, url+"/metrics")
		return strings.Contains(metrics, `outcome="forwarded",topic="orders"} 2`) &&
			strings.Contains(metrics, `outcome="duplicate",topic="orders"} 2`) &&
			strings.Contains(metrics, `outcome="dead_lettered",topic="orders"} 1`)
	})
	if page := get(t, url+"/"); !strings.Contains(page, "orders.clean") {
		t.Errorf("the page:\n%s", page)
	}
	if metrics := get(t, url+"/metrics"); !strings.Contains(metrics,
		`client_id="orders-dedup-test-0-output"`) {
		t.Error("there are no series of the client that forwards")
	}
	r.stopsWell()
	if got := keysOf(t, output, "orders.clean"); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("the clean topic has %v", got)
	}
	if got := keysOf(t, output, "orders.dup"); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("the duplicates topic has %v", got)
	}
	if got := keysOf(t, output, "orders.dlq"); len(got) != 1 {
		t.Errorf("the dead-letter topic has %v", got)
	}
	if got := topicNames(t, input); slices.Contains(got, "orders.clean") {
		t.Errorf("the input's cluster has the topics %v now", got)
	}

	for id, want := range map[string]string{
		"a": "yes: it stands on orders.clean", "b": "forwarded    yes\n",
	} {
		if code, text := kdedup(t.Context(), "id", "lookup", "-c", path, id); code != 0 ||
			!strings.Contains(text, want) {
			t.Errorf("id lookup %s: %d, want %q:\n%s", id, code, want, text)
		}
	}
	if code, text := kdedup(t.Context(), "report", "-c", path); code != 0 {
		t.Errorf("report: %d:\n%s", code, text)
	}
	if code, text := kdedup(t.Context(), "redrive", "-c", path, "--yes", "--duplicates",
		"--into", "input"); code != 2 || !strings.Contains(text, "use --into clean") {
		t.Errorf("redrive into the input: %d:\n%s", code, text)
	}
	report, said := redriveEnding(t, 1, path, "--into", "clean")
	if report.Read != 1 || report.Redriven != 0 || len(report.Refused) != 1 ||
		!strings.Contains(said, "nothing was redriven: 1 of 1 letters were refused") {
		t.Errorf("a letter without an ID was redriven: %+v\n%s", report, said)
	}
}

func TestADeadLetterIsRedrivenOnceOnTheOtherCluster(t *testing.T) {
	_, input := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	cluster, output := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders.dlq"))
	path := writeApart(t, input, output, apartTopic)
	if code, text := kdedup(t.Context(), "setup", "-c", path, "--skip-self-test"); code != 0 {
		t.Fatal(text)
	}
	small := "1000"
	admin := kadm.NewClient(testkit.KafkaClient(t, output))
	limit := func(value string) {
		t.Helper()
		answers, err := admin.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{
			{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &value},
		}, "orders.clean")
		if err != nil || answers[0].Err != nil {
			t.Fatal(err, answers)
		}
	}
	limit(small)
	if err := testkit.KafkaClient(t, input).ProduceSync(t.Context(), &kgo.Record{Topic: "orders",
		Key: []byte("large"), Value: make([]byte, 4000)}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	runUntilRead(t, path, "dead_lettered", 1)
	limit("1000000")
	var transactions atomic.Int64
	cluster.ControlKey(int16(kmsg.EndTxn), func(kmsg.Request) (kmsg.Response, error, bool) {
		transactions.Add(1)
		cluster.KeepControl()
		return nil, nil, false
	})
	for _, want := range []int64{1, 0} {
		if report := redriveReport(t, path, "--into", "clean"); report.Redriven != want {
			t.Errorf("%d are redriven, want %d: %+v", report.Redriven, want, report)
		}
	}
	if got := keysOf(t, output, "orders.clean"); !slices.Equal(got, []string{"large"}) {
		t.Errorf("the clean topic has %v", got)
	}
	if got := topicNames(t, input); slices.Contains(got, "orders-dedup.redrive") {
		t.Error("the marks are on the input's cluster")
	}
	if transactions.Load() == 0 {
		t.Error("no transaction on the cluster of the output")
	}
}

func TestTheBenchMeasuresAPipelineOnTwoClusters(t *testing.T) {
	for delivery, topic := range map[string]string{"exactly_once": exactApart,
		"at_least_once": apartTopic} {
		t.Run(delivery, func(t *testing.T) {
			_, input := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
			_, output := testkit.FakeKafka(t)
			path := writeApart(t, input, output, topic)
			code, text := kdedup(t.Context(), "bench", "pipeline", "-c", path, "--records", "2000",
				"--partitions", "2")
			if code != 0 || !regexp.MustCompile(`lost +0\b`).MatchString(text) ||
				!regexp.MustCompile(`doubled +0\b`).MatchString(text) {
				t.Errorf("%d:\n%s", code, text)
			}
			nothingOfTheBenchIsLeft(t, input)
			nothingOfTheBenchIsLeft(t, output)
		})
	}
}

func nothingOfTheBenchIsLeft(t *testing.T, brokers []string) {
	t.Helper()
	groups, err := kadm.NewClient(testkit.KafkaClient(t, brokers)).ListGroups(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Concat(topicNames(t, brokers), groups.Groups()) {
		if strings.HasPrefix(name, "kdedup-bench") {
			t.Errorf("%s is left", name)
		}
	}
}

// The other cluster takes its time. Until it has acknowledged the records, the input's cluster has
// neither a fence that says that they were handled, nor an offset.
func TestNothingIsSettledBeforeTheOtherClusterHasIt(t *testing.T) {
	_, input := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	cluster, output := testkit.FakeKafka(t)
	path := writeApart(t, input, output, apartTopic)
	if code, text := kdedup(t.Context(), "setup", "-c", path, "--skip-self-test"); code != 0 {
		t.Fatal(text)
	}
	held, released := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(released) })
	t.Cleanup(release) // before the cluster ends
	var once sync.Once
	cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		once.Do(func() { close(held) })
		cluster.SleepControl(func() { <-released })
		return nil, nil, false
	})
	produceKeys(t, input, "orders", "a", "b")
	r := start(t, path)
	<-held
	admin := kadm.NewClient(testkit.KafkaClient(t, input))
	settled := func() (fences, offset int64) {
		t.Helper()
		ends, err := admin.ListEndOffsets(t.Context(), "orders-dedup.fence")
		if err != nil {
			t.Fatal(err)
		}
		offsets, err := admin.FetchOffsets(t.Context(), "orders-dedup")
		if err != nil {
			t.Fatal(err)
		}
		end, _ := ends.Lookup("orders-dedup.fence", 0)
		at, _ := offsets.Lookup("orders", 0)
		return end.Offset, at.At
	}
	if fences, offset := settled(); fences != 0 || offset != 0 {
		t.Errorf("%d fences, offset %d", fences, offset)
	}
	release()
	testkit.Eventually(t, time.Minute, "a fence and an offset", func() bool {
		fences, offset := settled()
		return fences == 1 && offset == 2
	})
	r.stopsWell()
}

func TestAnUnreachableOutputClusterIsNamed(t *testing.T) {
	_, input := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	path := writeApart(t, input, []string{"127.0.0.1:1"}, apartTopic)
	code, text := kdedup(t.Context(), "validate", "-c", path)
	if code != 1 || !strings.Contains(text, "kafka.output.brokers: ") {
		t.Errorf("%d:\n%s", code, text)
	}
}

// Each cluster has a user of its own, with the rights on its own topics alone, as docs/security.md
// has them. Nothing that is written or served shows a password.
func TestTheOtherClusterHasALoginAndRightsOfItsOwn(t *testing.T) {
	const here, there = "secret-of-the-input", "secret-of-the-output"
	topic, group := kmsg.ACLResourceTypeTopic, kmsg.ACLResourceTypeGroup
	_, input := testkit.FakeKafka(t, kfake.EnableSASL(), kfake.EnableACLs(),
		kfake.SeedTopics(1, "orders"), kfake.Superuser("PLAIN", "admin", "admin"),
		kfake.User("PLAIN", "ann", here, slices.Concat(
			acls(topic, "orders", kmsg.ACLOperationRead, kmsg.ACLOperationDescribeConfigs),
			acls(topic, "orders-dedup.fence", kmsg.ACLOperationCreate, kmsg.ACLOperationRead,
				kmsg.ACLOperationWrite, kmsg.ACLOperationDescribeConfigs),
			acls(group, "orders-dedup", kmsg.ACLOperationRead))...))
	_, output := testkit.FakeKafka(t, kfake.EnableSASL(), kfake.EnableACLs(),
		kfake.Superuser("PLAIN", "admin", "admin"),
		kfake.User("PLAIN", "bob", there, slices.Concat(
			acls(topic, "orders.clean", kmsg.ACLOperationCreate, kmsg.ACLOperationRead,
				kmsg.ACLOperationWrite, kmsg.ACLOperationDescribeConfigs),
			acls(topic, "orders.dlq", kmsg.ACLOperationCreate, kmsg.ACLOperationRead,
				kmsg.ACLOperationWrite, kmsg.ACLOperationDescribeConfigs),
			acls(topic, "orders-dedup.redrive", kmsg.ACLOperationCreate, kmsg.ACLOperationRead,
				kmsg.ACLOperationWrite, kmsg.ACLOperationDescribeConfigs),
			acls(kmsg.ACLResourceTypeTransactionalId, "orders-dedup-redrive",
				kmsg.ACLOperationWrite))...))
	path := writeApart(t, input, output, ordersTopic+"    delivery: at_least_once\n")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	login := func(user, password string) string {
		return "sasl: {mechanism: plain, username: " + user + ", password: " + password + "}"
	}
	with := strings.NewReplacer("], output: ", "], "+login("ann", here)+", output: ",
		"]}}", "], "+login("bob", there)+"}}").Replace(string(text))
	if err := os.WriteFile(path, []byte(with), 0o600); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	command := func(args ...string) {
		t.Helper()
		code, text := kdedup(t.Context(), append(args, "-c", path, "--log-level", "debug")...)
		said.WriteString(text)
		if code != 0 {
			t.Fatalf("%v: %d:\n%s", args, code, text)
		}
	}
	command("setup", "--skip-self-test")
	command("validate")
	command("backfill")
	command("report")
	admin := func(brokers []string) *kgo.Client {
		return testkit.KafkaClient(t, brokers,
			kgo.SASL(plain.Auth{User: "admin", Pass: "admin"}.AsMechanism()))
	}
	if err := admin(input).ProduceSync(t.Context(), &kgo.Record{Topic: "orders",
		Key: []byte("a")}, &kgo.Record{Topic: "orders"}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	r := start(t, path)
	url := r.url()
	testkit.Eventually(t, time.Minute, "a record and a dead letter", func() bool {
		metrics := get(t, url+"/metrics")
		return strings.Contains(metrics, `outcome="forwarded",topic="orders"} 1`) &&
			strings.Contains(metrics, `outcome="dead_lettered",topic="orders"} 1`)
	})
	for _, page := range []string{"/", "/api/status", "/api/config", "/metrics"} {
		said.WriteString(get(t, url+page))
	}
	r.stopsWell()
	said.WriteString(r.out.String())
	command("id", "lookup", "a")
	// the letter has no ID, so it is refused
	code, refused := kdedup(t.Context(), "redrive", "-c", path, "--into", "clean", "--yes",
		"--log-level", "debug")
	said.WriteString(refused)
	if code != 1 || !strings.Contains(refused, "nothing was redriven: 1 of 1 letters were refused") {
		t.Errorf("redrive: %d:\n%s", code, refused)
	}
	command("config", "print")
	for _, secret := range []string{here, there} {
		if strings.Contains(said.String(), secret) {
			t.Errorf("%s is shown", secret)
		}
	}
}

func acls(
	resource kmsg.ACLResourceType, name string, operations ...kmsg.ACLOperation,
) (list []kfake.ACL) {
	for _, o := range operations {
		list = append(list, kfake.ACL{Resource: resource, Name: name,
			Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: o, Allow: true})
	}
	return list
}
