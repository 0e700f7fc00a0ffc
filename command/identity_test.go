package command

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

// place is a cluster with the topics of an entry, and the entry's file.
type place struct {
	t      *testing.T
	client *kgo.Client
	broker string
	input  string
	path   string
}

// newPlace makes the topics. The store is in a directory.
func newPlace(t *testing.T, brokers []string, input, directory, more string) *place {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	p := &place{t: t, client: client, broker: brokers[0], input: input,
		path: filepath.Join(t.TempDir(), "kdedup.yaml")}
	text := fmt.Sprintf("instance: test\nkafka: {brokers: [%q]}\nstore: {type: embedded, embedded: {path: "+
		"%q}}\nserver: {listen: \"127.0.0.1:0\"}\ntopics:\n%s%s",
		brokers[0], directory, strings.ReplaceAll(ordersTopic, "orders", input), more)
	if err := os.WriteFile(p.path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p.must(0, "", "setup", "--skip-self-test")
	return p
}

// must runs a command and wants its exit code, and a text in what it prints.
func (p *place) must(code int, text, command string, flags ...string) {
	p.t.Helper()
	// a run that is not refused does not end
	ctx, cancel := context.WithTimeout(p.t.Context(), 30*time.Second)
	defer cancel()
	got, printed := kdedup(ctx, append(strings.Fields(command),
		append([]string{"-c", p.path}, flags...)...)...)
	if got != code || !strings.Contains(printed, text) {
		p.t.Errorf("kdedup %s: exit code %d, want %d with %q:\n%s", command, got, code, text,
			printed)
	}
}

func (p *place) produce(topic string, ids ...string) {
	p.t.Helper()
	for _, id := range ids {
		if err := p.client.ProduceSync(
			p.t.Context(), &kgo.Record{Topic: topic, Key: []byte(id), Value: []byte(id)},
		).FirstErr(); err != nil {
			p.t.Fatal(err)
		}
	}
}

// runUntil runs until all of the input is committed.
func (p *place) runUntil(n int64) {
	p.t.Helper()
	r := start(p.t, p.path)
	p.t.Cleanup(func() {
		if p.t.Failed() {
			p.t.Log(r.out.String())
		}
	})
	testkit.Eventually(p.t, time.Minute, fmt.Sprintf("%d records committed", n),
		func() bool {
			offsets, err := kadm.NewClient(p.client).FetchOffsets(p.t.Context(), p.input+"-dedup")
			at, _ := offsets.Lookup(p.input, 0)
			return err == nil && at.At >= n
		})
	r.stopsWell()
}

func (p *place) clean() (ids []string) {
	p.t.Helper()
	testkit.ReadCommitted(p.t, p.input+".clean", func(r *kgo.Record) {
		ids = append(ids, string(r.Key))
	}, kgo.SeedBrokers(p.broker))
	return ids
}

const knowsNothing = "the store knows nothing of what this consumer group has handled"

// Another working directory, a volume that is lost: every copy would pass.
func TestAStoreThatKnowsNothingIsRefusedUntilItIsAccepted(t *testing.T) {
	run := func(t *testing.T, brokers []string) {
		input := testkit.Topic(t, brokers, "orders", 1, nil)
		lost, fresh := filepath.Join(t.TempDir(), "lost"), filepath.Join(t.TempDir(), "fresh")
		before := newPlace(t, brokers, input, lost, "")
		before.must(0, "", "validate")
		before.produce(input, "a", "b")
		before.runUntil(2)
		before.must(0, "", "validate")
		after := newPlace(t, brokers, input, fresh, "")
		for _, command := range []string{"validate", "run"} {
			after.must(1, knowsNothing+": copies of it would pass (store.embedded.path "+fresh,
				command)
		}
		before.produce(input, "a", "c")
		before.runUntil(4)
		after.must(0, "accepted store.embedded.path "+fresh, "setup", "--skip-self-test",
			"--accept-empty-store")
		after.must(0, "", "validate")
		after.produce(input, "d", "a")
		after.runUntil(6)
		if got := strings.Join(after.clean(), ""); got != "abcda" {
			t.Errorf("clean topic: %s", got)
		}
	}
	testkit.Kafkas(t, 1, run)
}

// An embedded store belongs to one process. Two with a store each would forward every message
// twice.
func TestASecondProcessWithAStoreOfItsOwnIsRefused(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	one := newPlace(t, brokers, "orders", filepath.Join(t.TempDir(), "one"), "")
	one.produce("orders", "a")
	r := start(t, one.path)
	url := r.url()
	testkit.Eventually(t, time.Minute, "the record is forwarded", func() bool {
		return strings.Contains(get(t, url+"/metrics"), `outcome="forwarded",topic="orders"} 1`)
	})
	two := newPlace(t, brokers, "orders", filepath.Join(t.TempDir(), "two"), "")
	two.must(1, knowsNothing, "run", "--instance", "two")
	r.stopsWell()
}

// Commands that only look make no store: it would be another one than that of run.
func TestALookUpMakesNoStore(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "none")
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	p := newPlace(t, brokers, "orders", directory, "")
	p.must(1, "there is no store.embedded.path "+directory, "id lookup", "a")
	p.must(0, "", "validate")
	if _, err := os.Stat(directory); !os.IsNotExist(err) {
		t.Errorf("%s: %v", directory, err)
	}
}

// After a failover the records have other places: each of them would find another owner of its ID,
// and be dropped.
func TestAMirrorOfTheInputIsRefusedAndGoesOnInAScopeOfItsOwn(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.ClusterID("first"), kfake.SeedTopics(1, "orders"))
	_, mirror := testkit.FakeKafka(t, kfake.ClusterID("mirror"), kfake.SeedTopics(1, "orders"))
	directory := filepath.Join(t.TempDir(), "store")
	first := newPlace(t, brokers, "orders", directory, "")
	first.produce("orders", "a", "b")
	first.runUntil(2)
	second := newPlace(t, mirror, "orders", directory, "")
	second.produce("orders", "a", "b", "c", "d", "e")
	second.produce("orders.clean", "a", "b")
	for _, command := range []string{"validate", "run"} {
		second.must(1, "has the claims of orders on the Kafka cluster first, and this is mirror",
			command)
	}
	over := newPlace(t, mirror, "orders", directory, "    scope: orders-mirror\n")
	over.must(0, "", "backfill")
	over.runUntil(5)
	if got := strings.Join(over.clean(), ""); got != "abcde" {
		t.Errorf("clean topic: %s", got)
	}
	second.must(0, "shared the claims of scope orders-dedup/orders with the Kafka cluster mirror",
		"setup", "--skip-self-test", "--share-with-cluster")
	second.must(0, "", "validate")
}
