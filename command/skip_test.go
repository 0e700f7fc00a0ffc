package command

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

func TestAnOperatorTakesTheRecordOutOfTheWay(t *testing.T) {
	for flag, outcome := range map[string]string{"--drop": "dropped",
		"--dead-letter": "dead_lettered"} {
		t.Run(outcome, func(t *testing.T) {
			_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
			path := write(t, brokers, ordersTopic+"    on_undeliverable: stop\n")
			if code, text := kdedup(t.Context(), "setup", "-c", path); code != 0 {
				t.Fatal(text)
			}
			client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			limit := "1000"
			answers, err := kadm.NewClient(client).AlterTopicConfigs(t.Context(),
				[]kadm.AlterConfig{{Name: "max.message.bytes", Value: &limit}}, "orders.clean")
			if err != nil || answers[0].Err != nil {
				t.Fatal(err, answers)
			}
			for i, size := range []int{10, 10, 2000, 10} {
				r := &kgo.Record{Topic: "orders", Key: fmt.Append(nil, i),
					Value: make([]byte, size)}
				if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
					t.Fatal(err)
				}
			}
			r := start(t, path)
			testkit.Eventually(t, time.Minute, "a partition that is held", func() bool {
				return strings.Contains(get(t, r.url()+"/readyz"),
					"orders[0] held at offset 2: record_too_large: on_undeliverable is stop") &&
					strings.Contains(get(t, r.url()+"/metrics"), // what is before it is committed
						`kdedup_records_total{outcome="forwarded",topic="orders"} 2`)
			})
			skip := func(offset string, more ...string) (int, string) {
				return kdedup(t.Context(),
					append([]string{"skip", "-c", path, "--partition", "0", "--offset", offset,
						flag}, more...)...)
			}
			if code, text := skip("3", "--yes"); code != 1 ||
				!strings.Contains(text,
					"orders[0]@3 is not the record at which the partition is held: "+
						"the next one that is to be handled is at offset 2") {
				t.Errorf("exit code %d:\n%s", code, text)
			}
			if code, text := skip("2"); code != 1 ||
				!strings.Contains(text, "nothing was changed") {
				t.Errorf("exit code %d:\n%s", code, text)
			}
			if code, text := skip("2", "--yes"); code != 0 {
				t.Errorf("exit code %d:\n%s", code, text)
			}
			testkit.Eventually(t, 2*time.Minute, "the record behind it", func() bool {
				return strings.Contains(get(t, r.url()+"/metrics"),
					`kdedup_records_total{outcome="forwarded",topic="orders"} 3`)
			})
			metrics := get(t, r.url()+"/metrics")
			for _, want := range []string{
				`kdedup_records_total{outcome="` + outcome + `",topic="orders"} 1`,
				`kdedup_undeliverable_total{reason="skipped",topic="orders"} 1`,
			} {
				if !strings.Contains(metrics, want) {
					t.Errorf("the metrics lack %s", want)
				}
			}
		})
	}
}

func TestASkipThatSaysTooLittleIsAUsageError(t *testing.T) {
	path := write(t, []string{"127.0.0.1:1"}, strings.Replace(ordersTopic,
		"    dead_letter_topic: orders.dlq\n", "    on_missing_id: drop\n", 1)+
		"    on_undeliverable: drop\n")
	for want, args := range map[string][]string{
		"--partition must be that of the record": {"--offset", "1", "--drop"},
		"--offset must be that of the record":    {"--partition", "1", "--drop"},
		"either --drop or --dead-letter": {"--partition", "1", "--offset",
			"1"},
		"the entry of orders has no dead_letter_topic; set it, or": {"--partition", "1", "--offset",
			"1", "--dead-letter"},
	} {
		code, text := kdedup(t.Context(), append([]string{"skip", "-c", path}, args...)...)
		if code != exitUsage || !strings.Contains(text, want) {
			t.Errorf("%v: exit code %d, want %q:\n%s", args, code, want, text)
		}
	}
}
