package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/command/proposal"
	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/internal/testkit"
)

// The messages of each recipe's page are known for what they are.
func TestEachKindOfTheRecipesIsKnownByItsRecords(t *testing.T) {
	for _, preset := range config.Presets() {
		var sample proposal.Sample
		for _, m := range readRecipe(t, preset).messages {
			if m.kind == "first" || m.kind == "different" {
				sample.Records = append(sample.Records, m.record("topic"))
			}
		}
		if kind, known := sample.Kind(); !known || kind.Name != preset {
			t.Errorf("the records of %s.md are taken for %+v", preset, kind)
		}
	}
}

func TestAnOrdinaryTopicIsOfNoKind(t *testing.T) {
	record := func(value string, headers ...string) *kgo.Record {
		r := &kgo.Record{Value: []byte(value)}
		for _, name := range headers {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: name, Value: []byte("x")})
		}
		return r
	}
	for name, r := range map[string]*kgo.Record{
		"a field id":              record(`{"id":"a","type":"order","source":"shop"}`),
		"a header id":             record(`{"amount":1}`, "id"),
		"an operation":            record(`{"op":"u","source":"shop"}`),
		"a header of CloudEvents": record(`{}`, "ce_id"),
		"no document":             record("op source.connector source.ts_ms"),
	} {
		if kind, known := (proposal.Sample{Records: []*kgo.Record{r}}).Kind(); known {
			t.Errorf("%s: it is taken for %+v", name, kind)
		}
	}
}

// produced makes a topic with records of this value and these headers, one of which is the record's
// own.
func produced(t *testing.T, brokers []string, value, own string, headers ...string) string {
	t.Helper()
	topic := testkit.Topic(t, brokers, "kinds", 1, nil)
	var records []*kgo.Record
	for i := range 5 {
		r := &kgo.Record{Topic: topic, Value: fmt.Appendf(nil, value, i)}
		for _, name := range headers {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: name, Value: []byte("same")})
		}
		if own != "" {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: own, Value: fmt.Append(nil, i)})
		}
		records = append(records, r)
	}
	if err := testkit.KafkaClient(t, brokers).ProduceSync(t.Context(), records...).
		FirstErr(); err != nil {
		t.Fatal(err)
	}
	return topic
}

func initAt(t *testing.T, brokers []string, topic string, flags ...string) (int, string, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kdedup.yaml")
	code, text := kdedup(t.Context(), append([]string{"init", "--brokers",
		strings.Join(brokers, ","), "--topic", topic, "--output", path}, flags...)...)
	file, _ := os.ReadFile(path) // there is none if it failed
	return code, text, string(file)
}

// Receivers of webhooks write the names of headers in any case. The preset that init proposes finds
// the IDs, and validate says the same.
func TestWhatInitProposesForWebhooksFindsTheirIDs(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	for _, event := range []string{"X-Github-Event", "x-gitHub-event"} {
		topic := produced(t, brokers, `{"action":"opened","n":%d}`,
			event[:9]+"Delivery", event)
		code, text, file := initAt(t, brokers, topic)
		if code != 0 || !strings.Contains(file, "preset: github") {
			t.Fatalf("exit code %d: %s\n%s", code, text, file)
		}
	}
	topic := produced(t, brokers, `{"n":%d}`, "ID", "eventtype") // Debezium's has id
	if code, text, file := initAt(t, brokers, topic); strings.Contains(file, "preset:") {
		t.Errorf("a preset that finds nothing is proposed, exit code %d: %s\n%s", code, text, file)
	}
}

func TestInitSaysThatValuesNeedARegistry(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	for value, row := range map[string]struct{ header, want string }{
		"\x00\x00\x00\x00\x07\x02%d": {"", "write schema_registry and message_id: {from: avro"},
		"\x02\x04%d":                 {"apicurio.value.globalId", "schema_registry.type: apicurio"},
		"\x06%d":                     {"__value_schema_id", "__value_schema_id names the schema"},
	} {
		var headers []string
		if row.header != "" {
			headers = append(headers, row.header)
		}
		topic := produced(t, brokers, value, "", headers...)
		if code, text, _ := initAt(t, brokers, topic); code == 0 ||
			!strings.Contains(text, row.want) {
			t.Errorf("%q: exit code %d: %s", value, code, text)
		}
		code, text, file := initAt(t, brokers, topic, "--id", "value_hash")
		comment := strings.Join(strings.Fields(strings.ReplaceAll(file, "#", "")), " ")
		if code != 0 || !strings.Contains(comment, row.want) {
			t.Errorf("%q with --id value_hash: exit code %d: %s\n%s", value, code, text, file)
		}
		topic = produced(t, brokers, value, "message-id", headers...)
		if code, text, file := initAt(t, brokers, topic); code != 0 ||
			!strings.Contains(file, "message-id") {
			t.Errorf("%q with an ID in a header: exit code %d: %s", value, code, text)
		}
	}
	topic := produced(t, brokers, "\x00\x00\x00\x00\x07{\"order\":\"a%d\"}", "")
	if _, text, _ := initAt(t, brokers, topic); strings.Contains(text, "schema_registry") {
		t.Errorf("a document behind the ID of a schema needs no registry: %s", text)
	}
}

// What init writes for a topic of a kind is its preset, with which the records are cleaned.
func TestInitProposesThePreset(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	topic := testkit.Topic(t, brokers, "changes", 1, nil)
	var records []*kgo.Record
	for _, m := range readRecipe(t, config.PresetDebezium).messages {
		if m.kind == "first" || m.kind == "different" {
			records = append(records, m.record(topic))
		}
	}
	client := testkit.KafkaClient(t, brokers)
	if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kdedup.yaml")
	code, text := kdedup(t.Context(), "init", "--brokers", strings.Join(brokers, ","), "--topic",
		topic, "--output", path)
	if code != 0 || !strings.Contains(text, "1. what preset: debezium stands for: ") {
		t.Fatalf("exit code %d: %s", code, text)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := config.Parse(path, file, nil)
	if err != nil {
		t.Fatalf("%v in\n%s", err, file)
	}
	if got := c.Topics[0]; got.MessageID.Preset != config.PresetDebezium ||
		got.OnTombstone != config.ActionForward {
		t.Errorf("init wrote\n%s", file)
	}
}
