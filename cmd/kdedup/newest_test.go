package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

// The header is message-id; the file says Message-ID.
func TestAMessageIDThatFindsNothingHoldsThePipelineUntilItIsCorrected(t *testing.T) {
	run := func(t *testing.T, brokers []string) {
		input := testkit.Topic(t, brokers, "orders", 1, nil)
		topics := strings.ReplaceAll(strings.ReplaceAll(ordersTopic, "orders", input),
			"{from: key}", "{from: header, name: Message-ID}")
		path := write(t, brokers, topics)
		client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		for n := range 20 {
			r := &kgo.Record{Topic: input, Value: []byte(`{"order": 1}`),
				Headers: []kgo.RecordHeader{
					{Key: "message-id", Value: fmt.Append(nil, n)},
					{Key: "source", Value: []byte("shop")},
				}}
			if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		want :=
			`topics[0].message_id: header:"Message-ID" found in 0 of the newest 20 records of ` +
				input +
				` (absent); headers seen: message-id, source; JSON fields seen: order`
		for command, code := range map[string]int{"setup": 0, "validate": 1} {
			if command == "validate" {
				if _, text := kdedup(t.Context(), "setup", "-c", path); !strings.Contains(text,
					want) {
					t.Error(text)
				}
			}
			if got, text := kdedup(t.Context(), command, "-c", path); got != code ||
				!strings.Contains(text, want) {
				t.Errorf("%s: exit code %d, want …%s…, got:\n%s", command, got, want, text)
			}
		}
		r := start(t, path)
		url := r.url()
		testkit.Eventually(t, time.Minute, "the reason in /readyz", func() bool {
			return strings.Contains(get(t, url+"/readyz"), want)
		})
		for _, topic := range []string{input + ".clean", input + ".dlq"} {
			ends, err := kadm.NewClient(client).ListCommittedOffsets(t.Context(), topic)
			if end, _ := ends.Lookup(topic, 0); err != nil || end.Offset > 0 {
				t.Errorf("%s ends at %d, %v", topic, end.Offset, err)
			}
		}
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path,
				[]byte(strings.Replace(string(text), "Message-ID", "message-id", 1)), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, time.Minute, "the records are forwarded", func() bool {
			return strings.Contains(get(t, url+"/metrics"),
				fmt.Sprintf(`outcome="forwarded",topic=%q} 20`, input))
		})
		r.stopsWell()
		if code, text := kdedup(t.Context(), "validate", "-c", path); code != 0 {
			t.Error(text)
		}
	}
	testkit.Kafkas(t, 1, run)
}
