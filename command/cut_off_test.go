package command

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

var notWhole = regexp.MustCompile(`begins? as JSON and (is|are) not whole`)

// A producer's connection broke within an order, which it sent again as a whole. The file that init
// proposes has the whole one win.
func TestARecordThatWasCutOffDoesNotBeatTheWholeOne(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	topic := testkit.Topic(t, brokers, "orders", 1, nil)
	produceOrders(t, brokers, topic, 40)
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.DefaultProduceTopic(topic))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	const cut, whole = `{"order_id":"x-1","amount": `, `{"order_id":"x-1","amount":5}`
	for _, text := range []string{cut, whole} {
		if err := client.ProduceSync(t.Context(),
			&kgo.Record{Value: []byte(text)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "kdedup.yaml")
	t.Setenv("KDEDUP_SERVER_LISTEN", "127.0.0.1:0")
	t.Setenv("KDEDUP_INSTANCE", "cut-off-test")
	t.Setenv("KDEDUP_STORE_TYPE", "embedded")
	t.Setenv("KDEDUP_STORE_EMBEDDED_PATH", filepath.Join(dir, "data"))
	code, printed := kdedup(t.Context(), "init", "--yes", "--brokers", strings.Join(brokers, ","),
		"--topic", topic, "--output", path, "--id", "json:order_id", "--store", "embedded")
	if code != 0 {
		t.Fatalf("init: exit code %d: %s", code, printed)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"    documents: whole\n", "    on_conflict: dead_letter\n"} {
		if !strings.Contains(string(file), want) {
			t.Errorf("%q is missing in\n%s", want, file)
		}
	}
	if code, text := kdedup(t.Context(), "setup", "-c", path, "--skip-self-test"); code != 0 {
		t.Fatal(text)
	}
	loose := filepath.Join(dir, "any.yaml")
	text := strings.Replace(string(file), "documents: whole", "documents: any", 1)
	if err := os.WriteFile(loose, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"validate", "report"} {
		if _, text := kdedup(t.Context(), command, "-c", loose); !notWhole.MatchString(text) {
			t.Errorf("%s says nothing of it:\n%s", command, text)
		}
	}
	r := start(t, path)
	url := r.url()
	testkit.Eventually(t, time.Minute, "all orders", func() bool {
		return strings.Contains(get(t, url+"/metrics"), fmt.Sprintf(
			`kdedup_records_total{outcome="forwarded",topic=%q} 41`, topic))
	})
	r.stopsWell()
	read := func(topic string) (values []string) {
		testkit.ReadCommitted(t, topic, func(r *kgo.Record) {
			values = append(values, string(r.Value))
		}, kgo.SeedBrokers(brokers...))
		return values
	}
	clean := read(topic + ".clean")
	if slices.Contains(clean, cut) || !slices.Contains(clean, whole) {
		t.Errorf("on the clean topic:\n%s", strings.Join(clean, "\n"))
	}
	if letters := read(topic + ".dlq"); !slices.Equal(letters, []string{cut}) {
		t.Errorf("dead letters: %q", letters)
	}
}
