package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

const partitions = 8

// deployment is one pipeline on topics and a store of its own, and the processes that run it.
type deployment struct {
	t        *testing.T
	brokers  []string
	forwards []string    // brokers of what is forwarded; nil: the same
	client   *kgo.Client // produces to given partitions
	admin    *kadm.Client
	input    string
	group    string
	config   string // the file
	delivery string
	largest  int      // bytes of a record's value
	settings []string // of the topic, besides those that all have
	ids      string   // message_id
	env      []string // more variables of the processes' environment
}

// place is where a deployment's topics and claims are.
type place struct {
	brokers []string // for the test
	output  []string // those of another cluster, for what is forwarded; nil: there is none
	store   string   // the configuration under store:, in braces
	kafka   string   // that under kafka:; empty means the test's brokers
}

// sharedKeyspace is one for all deployments on the shared Cassandra, each of which has a scope of
// its own in it. Changes of the schema are slow and go one after the other: a busy node would time
// out.
var sharedKeyspace struct {
	once sync.Once
	name string
}

// realServers are those that all tests share.
func realServers(t *testing.T) place {
	t.Helper()
	brokers, node := testkit.Kafka(t), testkit.Cassandra(t)
	sharedKeyspace.once.Do(func() { sharedKeyspace.name = testkit.Keyspace(t) })
	return place{brokers: brokers, store: cassandraStore(node, sharedKeyspace.name)}
}

func cassandraStore(node, keyspace string) string {
	return fmt.Sprintf("{type: cassandra, cassandra: {hosts: [%q], keyspace: %s}}", node, keyspace)
}

// inProcess is a Kafka in the test's process, and a store in a directory.
func inProcess(t *testing.T) place {
	t.Helper()
	_, brokers := testkit.FakeKafka(t)
	return place{brokers: brokers, store: embeddedStore(t)}
}

func embeddedStore(t *testing.T) string {
	return fmt.Sprintf("{type: embedded, embedded: {path: %q}}", t.TempDir())
}

// deploy is a deployment on the real servers, or on Kafka alone in a run on the claim log.
func deploy(t *testing.T, delivery string, settings ...string) *deployment {
	t.Helper()
	if os.Getenv(testkit.OnClaimLogEnv) != "" {
		return deployAt(t, onClaimLog(t, "files"), delivery, settings...)
	}
	return deployAt(t, realServers(t), delivery, settings...)
}

// deployAt writes the configuration and has the binary create what it needs.
func deployAt(t *testing.T, at place, delivery string, settings ...string) *deployment {
	t.Helper()
	d := prepare(t, at, delivery, settings...)
	d.command("setup", "--skip-self-test") // it waits for a claim to end; others run it
	return d
}

// prepare creates the input and writes the configuration.
func prepare(t *testing.T, at place, delivery string, settings ...string) *deployment {
	t.Helper()
	brokers := at.brokers
	d := &deployment{t: t, brokers: brokers, forwards: at.output, delivery: delivery, largest: 2000,
		ids: "{from: header, name: message-id}"}
	d.connect()
	d.input = testkit.Topic(t, brokers, "e2e.orders", partitions, nil)
	d.group = d.input + "-dedup"
	d.settings = slices.DeleteFunc(slices.Clone(settings), func(line string) bool {
		ids, found := strings.CutPrefix(line, "message_id: ")
		if found {
			d.ids = ids
		}
		return found
	})
	if !slices.ContainsFunc(settings, func(line string) bool {
		return strings.HasPrefix(line, "lanes:")
	}) {
		d.settings = append(d.settings, "lanes: 2")
	}
	return d.at(at)
}

// connect makes the test's own clients.
func (d *deployment) connect() {
	d.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(d.brokers...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MaxBufferedRecords(50_000), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(client.Close)
	d.client, d.admin = client, kadm.NewClient(client)
}

// at is the same deployment for processes that see the servers in another way.
func (d *deployment) at(where place) *deployment {
	d.t.Helper()
	if where.kafka == "" {
		where.kafka = fmt.Sprintf("{brokers: %q}", strings.Join(where.brokers, ","))
		if len(where.output) > 0 {
			where.kafka = fmt.Sprintf("{brokers: %q, output: {brokers: %q}}",
				strings.Join(where.brokers, ","), strings.Join(where.output, ","))
		}
	}
	seen := *d
	seen.config = filepath.Join(d.t.TempDir(), "kdedup.yaml")
	text := fmt.Sprintf(`
kafka: %s
store: %s
server: {listen: "127.0.0.1:0"}
topics:
  - input: %s
    output: %s
    consumer_group: %s
    delivery: %s
    message_id: %s
    dead_letter_topic: %s
    buckets: 64
    %s
`, where.kafka, where.store, d.input, d.output(), d.group, d.delivery, d.ids, d.input+".dlq", strings.Join(d.settings, "\n    "))
	if err := os.WriteFile(seen.config, []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
	return &seen
}

// addSettings adds lines to the top level of the configuration.
func (d *deployment) addSettings(text string) {
	d.t.Helper()
	before, err := os.ReadFile(d.config)
	if err == nil {
		err = os.WriteFile(d.config, append(before, text+"\n"...), 0o600)
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *deployment) output() string { return d.input + ".clean" }

// command runs kdedup to its end, which must be a good one.
func (d *deployment) command(args ...string) string {
	d.t.Helper()
	var out bytes.Buffer
	cmd := exec.CommandContext(d.t.Context(), kdedup, append(args, "-c", d.config)...)
	cmd.Env, cmd.Stdout, cmd.Stderr = testkit.Environment(), &out, &out
	if err := cmd.Run(); err != nil {
		d.t.Fatalf("kdedup %s: %v\n%s", strings.Join(args, " "), err, out.String())
	}
	return out.String()
}

// refused runs kdedup to its end, which must be exit code 1 with one line that says why.
func (d *deployment) refused(args ...string) (line, all string) {
	d.t.Helper()
	out, code := d.try(args...)
	if code != 1 {
		d.t.Fatalf("kdedup %s: exit code %d, want 1\n%s", strings.Join(args, " "), code, out)
	}
	before, line, found := strings.Cut("\n"+out, "\nkdedup: ")
	if !found || strings.Count(line, "\n") != 1 || strings.Contains(before, "level=WARN") ||
		strings.Contains(before, "level=ERROR") {
		d.t.Errorf("kdedup %s says more or less than one line:\n%s", strings.Join(args, " "), out)
	}
	return strings.TrimSpace(line), out
}

// try runs kdedup to its end, whatever that is.
func (d *deployment) try(args ...string) (out string, code int) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, kdedup, append(args, "-c", d.config)...)
	cmd.Env = testkit.Environment()
	text, _ := cmd.CombinedOutput()
	return string(text), cmd.ProcessState.ExitCode()
}

// claimByHand blocks an ID, and releases it again.
func (d *deployment) claimByHand() {
	d.t.Helper()
	d.command("id", "claim", "--yes", "by-hand")
	if got := d.command("id", "lookup", "by-hand"); !strings.Contains(got, "claimed by hand") {
		d.t.Errorf("a claim by hand shows as\n%s", got)
	}
	d.command("id", "release", "--yes", "by-hand")
	if got := d.command("id", "lookup", "by-hand"); !strings.Contains(got,
		"the next copy will be forwarded") {
		d.t.Errorf("after its release the id shows as\n%s", got)
	}
}

// progress returns how many records of the input are committed, and how many there are.
func (d *deployment) progress() (committed, end int64) {
	ctx := d.t.Context()
	offsets, err := d.admin.FetchOffsets(ctx, d.group)
	if err != nil {
		return 0, 1
	}
	ends, err := d.admin.ListEndOffsets(ctx, d.input)
	if err != nil {
		return 0, 1
	}
	ends.Each(func(o kadm.ListedOffset) {
		end += o.Offset
		if at, ok := offsets.Lookup(d.input, o.Partition); ok {
			committed += at.At
		}
	})
	return committed, end
}

// askEvery is the pause between two questions about progress. Many deployments wait side by side.
const askEvery = 100 * time.Millisecond

// waitFor returns when at least the share of the input is committed.
func (d *deployment) waitFor(share float64) {
	d.t.Helper()
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	testkit.Eventually(d.t, 5*time.Minute, fmt.Sprintf("%.0f %% of the input committed", 100*share),
		func() bool {
			<-tick.C
			committed, end := d.progress()
			return float64(committed) >= share*float64(end)
		})
}
