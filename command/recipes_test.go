package command

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/forwarder"
	"github.com/kdedup/kdedup/internal/testkit"
)

func TestEachRecipeSaysWhatItsPresetStandsFor(t *testing.T) {
	index, err := os.ReadFile("../docs/recipes/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, preset := range config.Presets() {
		if !strings.Contains(string(index), fmt.Sprintf("[%s](%[1]s.md)", preset)) {
			t.Errorf("docs/recipes/README.md does not lead to %s", preset)
		}
		r := readRecipe(t, preset)
		byName, _, err := config.Parse(preset, []byte(r.file), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := byName.Topics[0].MessageID.Preset; got != preset {
			t.Errorf("the file for %s has preset %q", preset, got)
		}
		own := "    message_id: {preset: " + preset + "}\n"
		out, _, err := config.Parse(preset, []byte(strings.Replace(r.file, own,
			regexp.MustCompile("(?m)^").ReplaceAllString(strings.TrimSpace(r.settings), "    ")+
				"\n", 1)), nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(byName, out, cmpopts.EquateEmpty(),
			cmpopts.IgnoreFields(config.MessageID{}, "Preset")); diff != "" {
			t.Errorf("%s.md: the preset (-) and what is written out (+):\n%s", preset, diff)
		}
	}
}

func TestEachRecipeRunsFromItsPage(t *testing.T) {
	for _, preset := range config.Presets() {
		t.Run(preset, func(t *testing.T) {
			_, brokers := testkit.FakeKafka(t)
			runRecipe(t, brokers, preset)
		})
	}
}

func TestARecipeRunsOnARealKafka(t *testing.T) {
	runRecipe(t, testkit.Kafka(t), config.PresetDebezium)
}

// runRecipe runs the page's configuration on topics of the test, all in one partition: then the
// page's order is that of the clean topic.
func runRecipe(t *testing.T, brokers []string, preset string) {
	r := readRecipe(t, preset)
	path := filepath.Join(t.TempDir(), "kdedup.yaml")
	if err := os.WriteFile(path, []byte(r.file), 0o600); err != nil {
		t.Fatal(err)
	}
	topic := testkit.Topic(t, brokers, "recipe", 1, nil)
	for name, value := range map[string]string{
		"KDEDUP_INSTANCE": "recipe", "KDEDUP_KAFKA_BROKERS": brokers[0],
		"KDEDUP_SERVER_LISTEN":              "127.0.0.1:0",
		"KDEDUP_STORE_KAFKA_PATH":           t.TempDir(),
		"KDEDUP_TOPICS_0_INPUT":             topic,
		"KDEDUP_TOPICS_0_OUTPUT":            topic + ".clean",
		"KDEDUP_TOPICS_0_CONSUMER_GROUP":    topic + "-dedup",
		"KDEDUP_TOPICS_0_DUPLICATES_TOPIC":  topic + ".duplicates",
		"KDEDUP_TOPICS_0_DEAD_LETTER_TOPIC": topic + ".dlq",
	} {
		t.Setenv(name, value)
	}
	if code, text := kdedup(t.Context(), "setup", "-c", path); code != 0 {
		t.Fatalf("setup: %d: %s", code, text)
	}
	p := &place{t: t, client: testkit.KafkaClient(t, brokers), broker: brokers[0], input: topic,
		path: path}
	var clean, copies []recipeMessage
	for _, m := range r.messages {
		if err := p.client.ProduceSync(t.Context(), m.record(topic)).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if m.kind == "copy" {
			copies = append(copies, m)
		} else {
			clean = append(clean, m)
		}
	}
	p.runUntil(int64(len(r.messages)))
	mustHold(t, brokers, topic+".clean", clean, "")
	mustHold(t, brokers, topic+".duplicates", copies, "duplicate")
}

// What an earlier version claimed for a preset that has changed since stays claimed: run, validate
// and the commands go by the IDs that the scope was made with, and say so.
func TestAScopeOfAnEarlierVersionGoesOnByItsIDs(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	topic := testkit.Topic(t, brokers, "earlier", 1, nil)
	now := fmt.Sprintf("instance: one\nkafka: {brokers: [%q]}\nserver: {listen: '127.0.0.1:0'}\n"+
		"store: {type: embedded, embedded: {path: %q}}\ntopics:\n  - input: %s\n    output: %[3]s"+
		".clean\n    consumer_group: %[3]s-dedup\n    duplicates_topic: %[3]s.duplicates\n"+
		"    dead_letter_topic: %[3]s.dlq\n    message_id: {preset: debezium}\n", brokers[0],
		filepath.Join(t.TempDir(), "store"), topic)
	own := "[ts_ms, ts_us, ts_ns, source.version, source.sequence, payload.ts_ms, payload.ts_us, " +
		"payload.ts_ns, payload.source.version, payload.source.sequence]"
	before := strings.Replace(now, "message_id: {preset: debezium}", "message_id: {from: "+
		"value_hash, ignore: "+own+"}\n    fingerprint: {ignore: "+own+"}\n"+
		"    on_tombstone: forward", 1)
	path := filepath.Join(t.TempDir(), "kdedup.yaml")
	write := func(file string) {
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := &place{t: t, client: testkit.KafkaClient(t, brokers), broker: brokers[0], input: topic,
		path: path}
	send := func(at, transaction int) {
		value := fmt.Sprintf(`{"after":{"id":1},"source":{"lsn":7},"op":"c","ts_ms":%d,`+
			`"transaction":{"total_order":%d}}`, at, transaction)
		if err := p.client.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Key: []byte("1"),
			Value: []byte(value)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	write(before)
	if code, text := kdedup(t.Context(), "setup", "-c", path); code != 0 {
		t.Fatalf("setup: %d: %s", code, text)
	}
	send(1, 5)
	p.runUntil(1)
	write(now)
	send(2, 5) // a copy by the rule of before
	p.runUntil(2)
	if got := p.clean(); len(got) != 1 {
		t.Errorf("the clean topic has %d records: the claim of the earlier version is lost", len(got))
	}
	if code, text := kdedup(t.Context(), "validate", "-c", path); code != 0 ||
		!strings.Contains(text, "docs/recipes/debezium.md says what that lets through") {
		t.Errorf("validate: %d: %s", code, text)
	}
	if code, text := kdedup(t.Context(), "backfill", "-c", path, "--force"); code != 0 ||
		!regexp.MustCompile(`(?m)^ +1 +by a record of the input`).MatchString(text) {
		t.Errorf("backfill: %d: %s", code, text)
	}
	another := strings.Replace(now, "message_id:", "scope: another\n    message_id:", 1)
	write(another)
	if code, text := kdedup(t.Context(), "backfill", "-c", path, "--force"); code != 0 {
		t.Errorf("backfill: %d: %s", code, text)
	}
	send(3, 1) // a copy by the rule of now
	p.runUntil(3)
	if got := p.clean(); len(got) != 1 {
		t.Errorf("the clean topic has %d records: the new scope does not know the message", len(got))
	}
}

// mustHold compares a topic with the messages that belong there, and their verdict.
func mustHold(
	t *testing.T, brokers []string, topic string, messages []recipeMessage, verdict string,
) {
	t.Helper()
	type seen struct{ Key, Value, Verdict string }
	var got, want []seen
	for _, m := range messages {
		r := m.record(topic)
		want = append(want, seen{string(r.Key), string(r.Value), verdict})
	}
	testkit.ReadCommitted(t, topic, func(r *kgo.Record) {
		s := seen{Key: string(r.Key), Value: string(r.Value)}
		for _, h := range r.Headers {
			if h.Key == forwarder.HeaderVerdict {
				s.Verdict = string(h.Value)
			}
		}
		got = append(got, s)
	}, kgo.SeedBrokers(brokers...))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", topic, diff)
	}
}
