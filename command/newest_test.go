package command

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
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

// Setup and validate tell what somebody may not know of the newest records.
func TestWhatTheNewestRecordsShowIsTold(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	path := write(t, brokers, strings.ReplaceAll(ordersTopic, "{from: key}",
		"{from: json, path: id}\n    only_if: {from: header, name: type, is: [order]}\n"+
			"    on_tombstone: forward\n    fingerprint: {only: [total]}"))
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	order := []kgo.RecordHeader{{Key: "type", Value: []byte("order")}}
	for _, r := range []*kgo.Record{
		{Value: []byte("\x00\x00\x00\x00\x07{\"id\":1,\"total\":5}"), Headers: order},
		{Value: []byte(`{"id":2}`), Headers: order},
		{Value: []byte("avro")}, {Key: []byte("1")}, {Key: []byte("2"), Headers: order},
	} {
		r.Topic = "orders"
		if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	for _, command := range []string{"setup", "validate"} {
		code, text := kdedup(t.Context(), command, "-c", path)
		const want = "message_id of orders: found in 2 of the newest 5 records; only_if does not " +
			"hold for 1, which pass as they are; 2 are tombstones, and on_tombstone is forward; " +
			"the values of 1 count as a whole, for fingerprint does not find its fields in them; " +
			"documents stand behind the five bytes of a schema registry, which are skipped"
		if code != 0 || !strings.Contains(text, want) {
			t.Errorf("%s: exit code %d, want %s, got:\n%s", command, code, want, text)
		}
	}
}
