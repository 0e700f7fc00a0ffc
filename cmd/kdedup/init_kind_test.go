package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/internal/proposal"
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
