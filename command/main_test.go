package command

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/internal/testkit"
)

// TestMain is also what the demo starts as `kdedup run`.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "run" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		os.Exit(Execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}

// kdedup runs a command as main does.
func kdedup(ctx context.Context, args ...string) (code int, text string) {
	var out testkit.Printed
	return executeTo(ctx, args, &out), out.String()
}

func executeTo(ctx context.Context, args []string, out io.Writer) int {
	return Execute(ctx, args, out, out)
}

// write makes a configuration file for topics of the brokers.
func write(t *testing.T, brokers []string, topics string) (path string) {
	t.Helper()
	return writeIn(t, fmt.Sprintf("{type: embedded, embedded: {path: %q}}",
		filepath.Join(t.TempDir(), "data")), "test", brokers[0], "127.0.0.1:0", topics)
}

// writeInLog is write with the claims in Kafka.
func writeInLog(t *testing.T, instance, broker, listen, topics string) (path string) {
	t.Helper()
	return writeIn(t, fmt.Sprintf("{type: kafka, kafka: {path: %q}}", t.TempDir()), instance,
		broker, listen, topics)
}

func writeIn(t *testing.T, store, instance, broker, listen, topics string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "kdedup.yaml")
	text := fmt.Sprintf("instance: %s\nkafka: {brokers: [%q]}\nstore: %s\n"+
		"server: {listen: %q}\ntopics:\n%s", instance, broker, store, listen, topics)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const ordersTopic = `
  - input: orders
    output: orders.clean
    consumer_group: orders-dedup
    message_id: {from: key}
    dead_letter_topic: orders.dlq
`

func TestExitCodes(t *testing.T) {
	good := write(t, []string{"127.0.0.1:1"}, ordersTopic)
	bad := write(t, []string{"127.0.0.1:1"}, "  - input: orders\n    lane: 2\n")
	cases := []struct {
		args []string
		code int
		text string
	}{
		{[]string{"version"}, 0, "kdedup "},
		{[]string{"--help"}, 0, "Available Commands"},
		{nil, 0, "Available Commands"},
		{[]string{"validate", "--offline", "-c", good}, 0, "is valid: 1 topic"},
		{[]string{"validate", "--offline", "-c", bad}, 2, "topics[0].lane"},
		{[]string{"run", "-c", bad}, 2, "topics[0].output"},
		{[]string{"run", "-c", "none.yaml"}, 2, "none.yaml"},
		{[]string{"setup", "more"}, 2, `unknown command "more"`},
		{[]string{"run", "--lanes", "3"}, 2, "unknown flag: --lanes; kdedup run --help lists all"},
		{[]string{"report", "--html"}, 2, "unknown flag: --html; did you mean --format html?"},
		{[]string{"redrive", "--partitions", "3"}, 2,
			"unknown flag: --partitions; did you mean --partition?"},
		{[]string{"dance"}, 2, `unknown command "dance"`},
		{[]string{"bench", "claims", "-c", good, "--topic", "none"}, 2,
			`no entry of topics has the input "none"`},
		{[]string{"bench", "pipeline", "-c", good, "--records", "0"},
			2, "records must be at least 1"},
		{[]string{"bench", "claims", "-c", good, "--duplicates", "1"}, 2,
			"--duplicates must be 0 to 0.99"},
		{[]string{"bench", "claims", "-c", good, "--before", "-1"}, 2,
			"--before must be at least 0"},
		{[]string{"bench", "claims", "-c", good, "--rate", "-1"}, 2, "--rate must be at least 0"},
		{[]string{"demo", "--rate", "0"}, 2, "--orders and --rate must be at least 1"},
		{[]string{"ready", "http://127.0.0.1:1/readyz"}, 1, "no process listens at 127.0.0.1:1: "},
		{[]string{"status", "http://127.0.0.1:1"}, 1, "no process listens at 127.0.0.1:1: "},
	}
	for _, c := range cases {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			code, text := kdedup(t.Context(), c.args...)
			if code != c.code || !strings.Contains(text, c.text) {
				t.Errorf("exit code %d, want %d with %q; printed:\n%s", code, c.code, c.text, text)
			}
		})
	}
}

func TestTheInstanceFlagWinsOverTheFile(t *testing.T) {
	path := write(t, []string{"127.0.0.1:1"}, ordersTopic)
	if code, text := kdedup(
		t.Context(), "validate", "--offline", "-c", path, "--instance", "not good",
	); code != 2 ||
		!strings.Contains(text, `instance (KDEDUP_INSTANCE): must be 1 to 200 of letters`) {
		t.Errorf("%d: %s", code, text)
	}
}

func TestValidateShowsEveryProblemOfTheServers(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(4, "orders"),
		kfake.SeedTopics(2, "payments", "payments.clean"))
	path := write(t, brokers, ordersTopic+`
  - {input: payments, output: payments.clean, consumer_group: payments-dedup, message_id: {from: key}, on_missing_id: drop}
  - {input: refunds, output: refunds.clean, consumer_group: refunds-dedup, message_id: {from: key}, on_missing_id: drop}
`)
	code, text := kdedup(t.Context(), "validate", "-c", path)
	for _, want := range []string{
		"topics[0]: topic orders.clean does not exist; run: kdedup setup -c " + path,
		"topics[0]: topic orders.dlq does not exist",
		"topics[1]: topic payments-dedup.fence does not exist",
		"topics[2]: input topic refunds does not exist; create it first",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
}

// running is a `run` in this process.
type running struct {
	t    *testing.T
	out  testkit.Printed
	stop context.CancelFunc
	code chan int
}

func start(t *testing.T, path string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{t: t, stop: cancel, code: make(chan int, 1)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.code <- executeTo(ctx, []string{"run", "-c", path}, &r.out)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return r
}

var addressLine = regexp.MustCompile(`msg="the status page answers" address=(\S+)`)

func (r *running) url() (url string) {
	r.t.Helper()
	testkit.Eventually(r.t, 30*time.Second, "the address in the log", func() bool {
		match := addressLine.FindStringSubmatch(r.out.String())
		if match != nil {
			url = "http://" + match[1]
		}
		return match != nil
	})
	return url
}

func get(t *testing.T, url string) string {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	return bodyOf(t, answer)
}

// bodyOf reads an answer to its end.
func bodyOf(t *testing.T, answer *http.Response) string {
	t.Helper()
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestSetupThenRunUntilTheSignal(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(4, "orders"))
	path := write(t, brokers, ordersTopic)
	if code, text := kdedup(t.Context(), "run", "-c", path); code != 1 ||
		!strings.Contains(text, "run: kdedup setup -c "+path) {
		t.Fatalf("run before setup: %d: %s", code, text)
	}
	if code, text := kdedup(t.Context(), "setup", "-c", path); code != 0 ||
		!strings.Contains(text, "created topic orders-dedup.fence") {
		t.Fatalf("setup: %d: %s", code, text)
	}
	r := start(t, path)
	url := r.url()
	testkit.Eventually(t, 2*time.Minute, "readiness", func() bool {
		code, _ := kdedup(t.Context(), "ready", url+"/readyz")
		return code == 0
	})
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for range 3 {
		if err := client.ProduceSync(
			t.Context(), &kgo.Record{Topic: "orders", Key: []byte("a"), Value: []byte("v")},
		).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Eventually(t, 2*time.Minute, "two duplicates in the metrics", func() bool {
		metrics := get(t, url+"/metrics")
		return strings.Contains(metrics,
			`kdedup_records_total{outcome="duplicate",topic="orders"} 2`) &&
			strings.Contains(metrics, `kdedup_records_total{outcome="forwarded",topic="orders"} 1`)
	})
	if code, text := kdedup(t.Context(), "validate", "-c", path); code != 0 ||
		!strings.Contains(text, "- the store and its scopes: used by a process that runs") {
		t.Errorf("validate beside run: %d: %s", code, text)
	}
	r.stop()
	if code := <-r.code; code != 0 {
		t.Errorf("exit code %d:\n%s", code, r.out.String())
	}
	if code, text := kdedup(t.Context(), "validate", "-c", path); code != 0 {
		t.Errorf("validate: %d: %s", code, text)
	}
}

// A scope remembers how its IDs are made: another way would find none of the old claims.
func TestAChangedMessageIDStopsTheStart(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	path := write(t, brokers, ordersTopic)
	if code, text := kdedup(t.Context(), "setup", "-c", path); code != 0 {
		t.Fatal(text)
	}
	r := start(t, path)
	url := r.url()
	testkit.Eventually(t, 30*time.Second, "readiness", func() bool {
		return strings.Contains(get(t, url+"/readyz"), "store: ok")
	})
	r.stop()
	<-r.code
	// a scope without claims could be registered again
	if code, text := kdedup(t.Context(), "id", "claim", "--yes", "-c", path, "order-1"); code != 0 {
		t.Fatal(text)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), "{from: key}", "{from: value_hash}", 1)
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	refused := func(want string) {
		t.Helper()
		for _, command := range []string{"validate", "run"} {
			code, text := kdedup(t.Context(), command, "-c", path)
			if code != 1 || !strings.Contains(text, want) {
				t.Errorf("%s: %d: %s", command, code, text)
			}
		}
	}
	refused("message_id was key and is now value_hash")
	changed = strings.Replace(string(text), "    message_id: {from: key}",
		"    fingerprint: {ignore: [ts_ms]}\n    message_id: {from: key}", 1)
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(`fingerprint was all and is now ignore "ts_ms"`)
}

func TestTheDemoFindsNothingLostAndNothingDoubledByAKill(t *testing.T) {
	code, text := kdedup(t.Context(), "demo", "--orders", "5000", "--rate", "2000")
	for _, want := range []string{`demo-2 is killed`,
		`killed +demo-2 +with SIGKILL, when [1-4]\d{3} `,
		`forwarded +5000 `, `lost +0`, `doubled +0`, `changed +0`,
		`was orders\[\d\]@\d+, a copy of orders\[\d\]@\d+, claimed `} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("%q is missing", want)
		}
	}
	if code != 0 || t.Failed() {
		t.Errorf("exit code %d:\n%s", code, text)
	}
}

func TestBenchMeasuresChecksAndCleansUp(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(4, "orders"))
	path := write(t, brokers, ordersTopic)
	for _, c := range []struct {
		args []string
		want []string
	}{
		{
			[]string{"bench", "pipeline", "-c", path, "--records", "5000", "--partitions", "3"},
			[]string{`records/s +\d`, `start s +\d`, `lost +0`, `doubled +0`, `changed +0`,
				`out of order +0`, `claims kept +\d`, `id order +unknown`},
		},
		{[]string{"bench", "pipeline", "-c", path, "--records", "100", "--json"},
			[]string{`"lost":0`, `"records/s":\d`}},
		{
			[]string{"bench", "claims", "-c", path, "--before", "5000", "--ids", "20000",
				"--duplicates", "0", "--topic", "orders", "--time-ordered", "--rate", "1000"},
			[]string{`claims +20000 .* after 5000 claims`, `applied +20000`, `claimed again +0`,
				`claims/s +\d`, `batch p99 ms +\d`, `advice for records/s +1000.0 +--rate`,
				`claims kept +604800000`},
		},
	} {
		code, text := kdedup(t.Context(), c.args...)
		for _, want := range c.want {
			if !regexp.MustCompile(want).MatchString(text) {
				t.Errorf("%v: %q is missing", c.args, want)
			}
		}
		if code != 0 || t.Failed() {
			t.Fatalf("%v: exit code %d:\n%s", c.args, code, text)
		}
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	topics, err := kadm.NewClient(client).ListTopics(t.Context())
	if err != nil || len(topics) != 1 {
		t.Errorf("left behind: %v, %v", topics.Names(), err)
	}
}
