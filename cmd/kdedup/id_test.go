package main

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

func TestAnswersAboutAnID(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	path := write(t, brokers, ordersTopic)
	if code, text := kdedup(t.Context(), "setup", "-c", path); code != 0 {
		t.Fatal(text)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	r := start(t, path)
	url := r.url()
	forward := func(n string) {
		t.Helper()
		if err := client.ProduceSync(
			t.Context(), &kgo.Record{Topic: "orders", Key: []byte("a"), Value: []byte("v")},
		).FirstErr(); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, 2*time.Minute, n+" forwarded", func() bool {
			return strings.Contains(get(t, url+"/metrics"),
				`kdedup_records_total{outcome="forwarded",topic="orders"} `+n)
		})
	}
	forward("1")
	r.stop()
	<-r.code
	for _, c := range []struct {
		args []string
		code int
		text string
	}{
		{[]string{"lookup", "a"}, 0, "forwarded    yes"},
		{[]string{"lookup", "a"}, 0, "partition 0, offset 0, leader epoch 0"},
		{[]string{"lookup", "--hex", "61", "--json"}, 0, `"seen":true`},
		{[]string{"lookup", "b"}, 0, "no: the next copy will be forwarded"},
		{[]string{"claim", "a", "--yes"}, 1, "a is owned by the record at partition 0, offset 0"},
		{[]string{"release", "a"}, 1, "nothing was changed"},
		{[]string{"lookup", "a"}, 0, "yes"},
		{[]string{"release", "a", "--yes"}, 0, "a is free"},
		{[]string{"lookup", "a"}, 0, "seen   no"},
		{[]string{"claim", "b", "-y"}, 0, "b is blocked for 168h0m0s"},
		{[]string{"claim", "b", "-y"}, 0, "b is blocked"},
		{[]string{"lookup", "b"}, 0, "claimed by hand"},
		{[]string{"lookup", "--hex", "xyz"}, 2, "--hex: "},
		{[]string{"lookup", "--topic", "none", "a"}, 2,
			`--topic must be one of orders, got "none"`},
		{[]string{"lookup"}, 2, "accepts 1 arg(s), received 0"},
	} {
		code, text := kdedup(t.Context(),
			append([]string{"id", c.args[0], "-c", path}, c.args[1:]...)...)
		if code != c.code || !strings.Contains(text, c.text) {
			t.Errorf("%v: exit code %d, want %d with %q:\n%s", c.args, code, c.code, c.text, text)
		}
	}
	again := start(t, path)
	url = again.url()
	forward("1")
}
