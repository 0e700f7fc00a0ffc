package command

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/internal/testkit"
)

// produceOrders writes orders, every tenth of them twice.
func produceOrders(t *testing.T, brokers []string, topic string, orders int) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var records []*kgo.Record
	for i := range orders {
		id := fmt.Sprintf("0a12c11d-71fa-4a2d-a02e-%012x", i)
		for range 1 + (9-i%10)/9 {
			records = append(records, &kgo.Record{Topic: topic,
				Key:   fmt.Appendf(nil, "customer-%d", i%7),
				Value: fmt.Appendf(nil, `{"order_id":%q,"amount":%d}`, id, i%50),
				Headers: []kgo.RecordHeader{
					{Key: "attempt", Value: fmt.Appendf(nil, "send-%d", len(records))}},
			})
		}
	}
	if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

func TestInitWritesAFileWithWhichThePipelineRuns(t *testing.T) {
	testkit.Kafkas(t, 1, func(t *testing.T, brokers []string) {
		topic := testkit.Topic(t, brokers, "orders", 3, nil)
		produceOrders(t, brokers, topic, 500)
		dir := t.TempDir()
		path := filepath.Join(dir, "kdedup.yaml")
		t.Setenv("KDEDUP_STORE_KAFKA_PATH", filepath.Join(dir, "data"))
		t.Setenv("KDEDUP_SERVER_LISTEN", "127.0.0.1:0")
		t.Setenv("KDEDUP_INSTANCE", "init-test")
		code, text := kdedup(t.Context(), "init", "--brokers", strings.Join(brokers, ","),
			"--topic", topic, "--output", path)
		for _, want := range []string{
			"JSON field order_id: on all 550 records, 500 different values; 50 copies with the " +
				"same content (UUID version 4)",
			"header attempt: it differs on 50 copies of one JSON field order_id",
			"kdedup setup    -c " + path,
		} {
			if code != 0 || !strings.Contains(text, want) {
				t.Fatalf("exit code %d, %q is missing: %s", code, want, text)
			}
		}
		for _, command := range []string{"setup", "validate"} {
			if code, text := kdedup(t.Context(), command, "-c", path); code != 0 {
				t.Fatalf("%s: exit code %d: %s", command, code, text)
			}
		}
		r := start(t, path)
		url := r.url()
		testkit.Eventually(t, 2*time.Minute, "500 orders on the clean topic", func() bool {
			return strings.Contains(get(t, url+"/metrics"), fmt.Sprintf(
				`kdedup_records_total{outcome="forwarded",topic=%q} 500`, topic))
		})
		if metrics := get(t, url+"/metrics"); !strings.Contains(metrics, fmt.Sprintf(
			`kdedup_records_total{outcome="duplicate",topic=%q} 50`, topic)) {
			t.Error("the 50 copies are missing in the metrics")
		}
	})
}

func TestInitSaysWhatIsMissing(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders", "payments"))
	produceOrders(t, brokers, "orders", 20)
	dir := t.TempDir()
	there := filepath.Join(dir, "there.yaml")
	if err := os.WriteFile(there, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	new := filepath.Join(dir, "new.yaml")
	for _, row := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{}, 2, "--brokers is required"},
		{[]string{"--brokers", brokers[0]}, 2, "--topic is required"},
		{[]string{"--brokers", "127.0.0.1:1", "--topic", "orders"}, 1, "kafka.brokers: "},
		{[]string{"--brokers", brokers[0], "--topic", "odrers"}, 2,
			"topic odrers does not exist, or may not be seen; did you mean orders?"},
		{[]string{"--brokers", brokers[0], "--topic", "clicks"}, 2, "there are orders, payments"},
		{[]string{"--brokers", brokers[0], "--topic", "payments"}, 2,
			"topic payments is empty, so nothing shows where its message ID will stand: name the " +
				"place by --id"},
		{[]string{"--brokers", brokers[0], "--topic", "orders", "--id", "header:none"}, 2,
			"none is on none of the newest 22 records of orders; there is JSON field order_id"},
		{[]string{"--brokers", brokers[0], "--topic", "orders", "--id", "json"}, 2,
			"--id must be header:NAME, key, json:PATH, avro:PATH"},
		{[]string{"--brokers", brokers[0], "--topic", "orders", "--id", "json:a..b"}, 2, "a..b"},
		{[]string{"--brokers", brokers[0], "--topic", "orders", "--store", "redis"}, 2,
			"--store-hosts is required"},
		{[]string{"--brokers", brokers[0], "--topic", "orders", "--ttl", "1ms"}, 2,
			"topics[0].ttl"},
		{[]string{"--brokers", brokers[0], "--topic", "orders", "--records", "0"}, 2,
			"--records must be 1 to 100000, got 0"},
		{[]string{"--brokers", brokers[0], "--topic", "orders", "--output", there}, 2,
			there + " exists: --force overwrites it"},
		{[]string{"--brokers", brokers[0], "--topic", "orders", "--sasl-username", "u"}, 2,
			"kafka.sasl.mechanism is set by --sasl-mechanism"},
	} {
		code, text := kdedup(t.Context(), append([]string{"init", "--output", new}, row.args...)...)
		if code != row.code || !strings.Contains(text, row.says) {
			t.Errorf("%v: exit code %d, want %d with %q:\n%s", row.args, code, row.code, row.says,
				text)
		}
	}
	if left, err := os.ReadFile(there); err != nil || string(left) != "mine" {
		t.Errorf("the file that was there: %q, %v", left, err)
	}
	if _, err := os.Stat(new); !os.IsNotExist(err) {
		t.Errorf("a file was left: %v", err)
	}
	if code, text := kdedup(t.Context(), "init", "--brokers", brokers[0], "--topic", "payments",
		"--id", "key", "--output", there, "--force"); code != 0 {
		t.Errorf("--force: exit code %d: %s", code, text)
	}
}

// Who is asked gives wrong answers, too.
func TestInitAsksOnATerminal(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders", "payments",
		"orders.clean", "orders-dedup.fence", "orders-dedup.claims", "mine.fence", "mine.claims",
		"mine.claims.scopes", "mine.redrive"))
	produceOrders(t, brokers, "orders", 20)
	path := filepath.Join(t.TempDir(), "kdedup.yaml")
	var out testkit.Printed
	cmd := newInit(func(io.Reader) bool { return true })
	cmd.SetArgs([]string{"--output", path})
	cmd.SetIn(strings.NewReader(strings.Join([]string{brokers[0], "odrers", "", "orders", "99",
		"wat", "header:none", "", "a week", "24h", "disk", "redis", "", ""}, "\n")))
	cmd.SetOut(&out)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%v:\n%s", err, out.String())
	}
	for _, want := range []string{
		"Brokers [localhost:9092]: ", "Topics: orders, payments\n",
		"there is no usual answer", "did you mean orders?",
		"must be 1 to ", "must be header:NAME", "is on none of the newest", "must be a duration",
		`got "disk"`, "Servers of the store [localhost:6379]",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	c, err := config.Load(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if topic := c.Topics[0]; topic.MessageID.Path != "order_id" || topic.TTL != 24*time.Hour ||
		c.Store.Type != config.StoreRedis || c.Store.Redis.Addresses[0] != "localhost:6379" {
		t.Errorf("%+v", c)
	}
}

// Whatever names there are, the file says what was chosen.
func TestEveryFileThatInitWritesIsRead(t *testing.T) {
	letters := []rune(`ab.$ {}[]|\"'#:,-_é` + "\t")
	random := rand.New(rand.NewPCG(3, 9))
	text := func(least int) string {
		name := make([]rune, least+random.IntN(12))
		for i := range name {
			name[i] = letters[random.IntN(len(letters))]
		}
		return string(name)
	}
	for range 2000 {
		p := plan{kafka: config.Kafka{Brokers: []string{"localhost:9092"}}, store: "embedded",
			index: "./" + text(1), input: "orders", output: "orders.clean", group: "g",
			id: config.MessageID{From: "composite", Parts: []config.MessageID{
				{From: "header", Name: text(1)}, {From: "header", Name: "true"}}},
			seen: []string{text(3), text(40)}, ttl: time.Hour}
		c, _, err := config.Parse("test", []byte(p.text()), nil)
		if err != nil {
			t.Fatalf("%v in\n%s", err, p.text())
		}
		if got := c.Topics[0]; got.MessageID.Parts[0].Name != p.id.Parts[0].Name ||
			got.MessageID.Parts[1].Name != "true" || c.Store.Embedded.Path != p.index {
			t.Fatalf("got %+v of\n%s", got, p.text())
		}
	}
}

// Two pipelines of one input, each with a clean topic of its own, share no dead letters.
func TestTheTopicsBesideACleanOneHaveItsName(t *testing.T) {
	for clean, want := range map[string][2]string{
		"orders.clean": {"orders.dlq", "orders.duplicates"},
		"orders.mine":  {"orders.mine.dlq", "orders.mine.duplicates"},
	} {
		p := plan{kafka: config.Kafka{Brokers: []string{"localhost:9092"}}, store: "embedded",
			index: "./index", input: "orders", output: clean, group: "g",
			id: config.MessageID{From: "key"}, ttl: time.Hour}
		c, _, err := config.Parse("test",
			[]byte(strings.Replace(p.text(), "# duplicates_topic", "duplicates_topic", 1)), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]string{c.Topics[0].DeadLetterTopic, c.Topics[0].DuplicatesTopic}; got != want {
			t.Errorf("beside %s: %s, want %s", clean, got, want)
		}
	}
}

func TestSecretsAreNotWritten(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(secret, []byte("from-the-file"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := connectionFlags{brokers: []string{"127.0.0.1:1"},
		sasl: config.SASL{Mechanism: "plain", Username: "u"}}
	for name, row := range map[string]struct{ file, environment, secret, says string }{
		"a file": {secret, "", "from-the-file", "password: \"file:" + secret},
		"the environment": {"", "from-the-environment", "from-the-environment",
			"must have KDEDUP_KAFKA_SASL_PASSWORD"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KDEDUP_KAFKA_SASL_PASSWORD", row.environment)
			f.passwordFile = row.file
			c, err := f.draft(placeholder)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.Kafka.SASL.Password.Reveal(); got != row.secret {
				t.Errorf("the password in effect is %q", got)
			}
			text := plan{kafka: c.Kafka, passwordFile: row.file, store: "embedded"}.text()
			if strings.Contains(text, row.secret) || !strings.Contains(text, row.says) {
				t.Errorf("%q is missing, or the secret is there:\n%s", row.says, text)
			}
		})
	}
}

func TestAReportNeedsNoFile(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders", "payments"))
	produceOrders(t, brokers, "orders", 20)
	for _, row := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--topic", "orders"}, 0,
			"message ID: JSON field order_id; of the newest records, on all 22 records"},
		{[]string{"--topic", "orders", "--id", "json:order_id"}, 0,
			"9.1 % of 22 records are copies"},
		{[]string{"--topic", "orders", "--id", "key"}, 0, "68.2 % of 22 records are copies"},
		{[]string{"--topic", "orders", "--id", "header:attempt"}, 0, "No copies among 22 records"},
		{[]string{"--topic", "orders", "--id", "value_hash", "-c", "kdedup.yaml"}, 2,
			"-c and --brokers exclude each other"},
		{nil, 2, "--topic is required with --brokers"},
		{[]string{"--topic", "odrers"}, 2, "did you mean orders?"},
		{[]string{"--topic", "payments"}, 2, "topic payments is empty"},
	} {
		code, text := kdedup(t.Context(),
			append([]string{"report", "--brokers", brokers[0]}, row.args...)...)
		if code != row.code || !strings.Contains(text, row.says) {
			t.Errorf("%v: exit code %d, want %d with %q:\n%s", row.args, code, row.code, row.says,
				text)
		}
	}
	path := write(t, brokers, ordersTopic)
	code, text := kdedup(t.Context(), "report", "-c", path, "--id", "json:order_id")
	if code != 0 || !strings.Contains(text, "9.1 % of 22 records are copies") {
		t.Errorf("--id beside a file: exit code %d: %s", code, text)
	}
}
