package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/internal/testkit"
)

// onTheLog is newPlace with the claims in the brokers.
func onTheLog(t *testing.T, brokers []string, settings, more string) *place {
	t.Helper()
	p := newPlace(t, brokers, "orders", "unused", more)
	p.inStore("{type: kafka, kafka: {path: " + filepath.Join(t.TempDir(), "index") + settings +
		"}}")
	return p
}

// inStore has the claims in the store that is configured by a text.
func (p *place) inStore(store string) {
	p.t.Helper()
	text, err := os.ReadFile(p.path)
	if err != nil {
		p.t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), "store: ")
	_, after, _ := strings.Cut(rest, "\n")
	if err := os.WriteFile(p.path, []byte(before+"store: "+store+"\n"+after), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func TestSetupMakesTheTopicsOfAClaimLogAndRaisesTheirRetention(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	p := onTheLog(t, brokers, "", "    ttl: 24h\n")
	missing := "store.kafka: open claim log: topic orders-dedup.claims: it does not exist; " +
		"run: kdedup setup -c " + p.path
	p.must(1, missing, "run")
	p.must(1, missing, "validate")
	p.must(0, "would create topic orders-dedup.claims (8 partitions, ", "setup --dry-run")
	p.must(0, "created topic orders-dedup.claims.scopes (1 partitions, ", "setup --skip-self-test")
	p.must(0, "topic orders-dedup.claims exists", "setup --skip-self-test")
	p.must(0, "", "validate")
	p.produce("orders", "a", "b", "a")
	p.runUntil(3)

	longer := onTheLog(t, brokers, "", "    ttl: 48h\n")
	const short = "topic orders-dedup.claims: the log keeps blocks for 25h0m0s, and must for at " +
		"least 49h0m0s, the ttl and 1h0m0s more; raise its retention; run: kdedup setup"
	longer.must(1, short, "validate")
	longer.must(1, short, "run")
	longer.must(0, "would raise retention.ms of topic orders-dedup.claims: 90000000 to 176400000",
		"setup --dry-run")
	longer.must(0, "raised retention.ms of topic orders-dedup.claims", "setup --skip-self-test")
	longer.must(0, "", "validate")
	p.must(0, "topic orders-dedup.claims exists", "setup --skip-self-test") // it lowers nothing
	longer.must(0, "", "validate")
	longer.produce("orders", "b", "c")
	longer.runUntil(5)
	if got := strings.Join(longer.clean(), ""); got != "abc" {
		t.Errorf("clean topic: %s", got)
	}
}

// The log of a group lies under the name that the configuration gives.
func TestTheTopicOfAClaimLogIsTheUsersChoice(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	p := onTheLog(t, brokers, `, topic: "internal.{group}", shards: 2`, "")
	p.must(0, "created topic internal.orders-dedup (2 partitions, ", "setup")
	p.must(0, "", "validate")
}

// Nobody may have the partitions of a process that cannot claim yet, and /readyz says why it has
// none.
func TestLanesJoinOnceTheClaimLogWasRead(t *testing.T) {
	cluster, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	p := onTheLog(t, brokers, "", "")
	p.must(0, "", "setup --skip-self-test")
	p.produce("orders", "a")
	p.runUntil(1)
	p.produce("orders", "a", "b")

	held := make(chan struct{})
	holdFetches(t, cluster, p.client, "orders-dedup.claims", held)
	again := onTheLog(t, brokers, "", "") // without the index of before
	r := start(t, again.path)
	url := r.url()
	testkit.Eventually(t, time.Minute, "/readyz says what it waits for", func() bool {
		return strings.Contains(get(t, url+"/readyz"),
			"the claim log of orders-dedup is being read")
	})
	groups, err := kadm.NewClient(p.client).DescribeGroups(t.Context(), "orders-dedup")
	if members := groups["orders-dedup"].Members; err != nil || len(members) > 0 {
		t.Errorf("members: %+v, %v", members, err)
	}
	close(held)
	testkit.Eventually(t, time.Minute, "all is committed", func() bool {
		offsets, err := kadm.NewClient(p.client).FetchOffsets(t.Context(), "orders-dedup")
		at, _ := offsets.Lookup("orders", 0)
		return err == nil && at.At >= 3
	})
	r.stopsWell()
	if got := strings.Join(p.clean(), ""); got != "ab" {
		t.Errorf("clean topic: %s", got)
	}
}

// holdFetches lets nobody read a topic until held is closed.
func holdFetches(
	t *testing.T, cluster *kfake.Cluster, client *kgo.Client, topic string, held chan struct{},
) {
	t.Helper()
	topics, err := kadm.NewClient(client).ListTopics(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	id := [16]byte(topics[topic].ID)
	cluster.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		for _, asked := range r.(*kmsg.FetchRequest).Topics {
			if asked.TopicID == id || asked.Topic == topic {
				cluster.SleepControl(func() { <-held })
			}
		}
		return nil, nil, false
	})
}

func TestAnIndexThatCannotBeWrittenIsForetold(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	p := onTheLog(t, brokers, "", "")
	p.must(0, "", "setup --skip-self-test")
	text, err := os.ReadFile(p.path)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	below := strings.Replace(string(text), "{type: kafka, kafka: {path: ",
		"{type: kafka, kafka: {path: "+file+"/", 1)
	for path, content := range map[string]string{file: "", p.path: below} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.must(1, "store.kafka.path: ", "validate")
}

// A process that runs has read the log already. One with another store is not asked.
func TestTheProcessThatHasReadTheClaimLogIsAskedFirst(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	p := onTheLog(t, brokers, "", "")
	const anyPort = `server: {listen: "127.0.0.1:0"}`
	server := `server: {listen: "` + nobody(t) + `"}`
	p.replace(anyPort, server)
	p.must(0, "", "setup --skip-self-test")
	p.produce("orders", "a")
	const reads = "the claim log is read, because no process answers for it"
	r := start(t, p.path)
	testkit.Eventually(t, time.Minute, "the record is forwarded", func() bool {
		_, text := kdedup(t.Context(), "id", "lookup", "-c", p.path, "--log-level", "debug", "a")
		return strings.Contains(text, "forwarded    yes") && !strings.Contains(text, reads)
	})
	p.must(0, "a is free", "id release -y a")
	p.must(0, "no: the next copy will be forwarded", "id lookup a")

	other := onTheLog(t, brokers, ", topic: \"{group}.other\"", "")
	other.replace(anyPort, server)
	other.must(0, "", "setup --skip-self-test")
	code, text := kdedup(t.Context(), "id", "lookup", "-c", other.path, "--log-level", "debug", "a")
	if code != 0 || !strings.Contains(text, reads) ||
		!strings.Contains(text, "has another store.kafka.topic") {
		t.Errorf("exit code %d: %s", code, text)
	}
	r.stopsWell()
}

// replace changes the file.
func (p *place) replace(from, to string) {
	p.t.Helper()
	text, err := os.ReadFile(p.path)
	if err != nil {
		p.t.Fatal(err)
	}
	if !strings.Contains(string(text), from) {
		p.t.Fatalf("%q is not in\n%s", from, text)
	}
	if err := os.WriteFile(p.path, []byte(strings.Replace(string(text), from, to, 1)),
		0o600); err != nil {
		p.t.Fatal(err)
	}
}
