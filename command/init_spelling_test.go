package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

// Capitals in a UUID mean nothing, so init makes one ID of its spellings. In another ID they may
// mean something, so it only tells of them.
func TestInitTellsOfIDsInCapitals(t *testing.T) {
	for name, c := range map[string]struct {
		ids  [2]string
		want []string
	}{
		"UUIDs": {[2]string{"4d47e190-0402-4048-bc2c-89dd54343cdc",
			"4D47E190-0402-4048-BC2C-89DD54343CDC"},
			[]string{"normalize: [trim, unquote, uuid]}", "more than one spelling: 1, such as"}},
		"others": {[2]string{"evt-aa-1", "EVT-AA-1"},
			[]string{"name: id}", "If they name one message, write normalize: [trim, unquote,"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, brokers := testkit.FakeKafka(t)
			topic := testkit.Topic(t, brokers, "events", 1, nil)
			client, err := kgo.NewClient(kgo.SeedBrokers(brokers...),
				kgo.DefaultProduceTopic(topic))
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			for _, id := range c.ids {
				r := &kgo.Record{Value: []byte("{}"),
					Headers: []kgo.RecordHeader{{Key: "id", Value: []byte(id)}}}
				if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
					t.Fatal(err)
				}
			}
			path := filepath.Join(t.TempDir(), "kdedup.yaml")
			code, printed := kdedup(t.Context(), "init", "--yes", "--brokers",
				strings.Join(brokers, ","), "--topic", topic, "--output", path, "--id", "header:id",
				"--store", "embedded")
			if code != 0 {
				t.Fatalf("init: exit code %d: %s", code, printed)
			}
			file, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text := strings.Join(strings.Fields(strings.ReplaceAll(string(file), "#", "")), " ")
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is missing in\n%s", want, file)
				}
			}
		})
	}
}
