package command

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/command/report"
	"github.com/kdedup/kdedup/internal/testkit"
)

// produceKeys writes records with these keys, an hour apart, the last one a minute ago. An empty
// one is null.
func produceKeys(t *testing.T, brokers []string, topic string, keys ...string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for i, key := range keys {
		r := &kgo.Record{
			Topic: topic, Value: []byte("v"),
			Timestamp: time.Now().Add(-time.Minute - time.Duration(len(keys)-1-i)*time.Hour),
			Headers:   []kgo.RecordHeader{{Key: "producer", Value: fmt.Appendf(nil, "p%d", i%2)}},
		}
		if key != "" {
			r.Key = []byte(key)
		}
		if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAReportOfATopic(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	path := write(t, brokers, strings.Replace(ordersTopic, "dead_letter_topic",
		"ttl: 150m\n    dead_letter_topic", 1))
	// the third a comes after the first one's ttl
	produceKeys(t, brokers, "orders", "a", "b", "a", "", "a", "c")
	read := func(args ...string) (r report.Report) {
		t.Helper()
		var out, errs testkit.Printed
		if code := Execute(
			t.Context(), append([]string{"report", "-c", path, "--format", "json"}, args...), &out,
			&errs,
		); code != 0 {
			t.Fatalf("%v: exit code %d: %s", args, code, errs.String())
		}
		if err := json.Unmarshal([]byte(out.String()), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := read("--by-header", "producer")
	if r.Totals.Records != 6 || r.Totals.Copies != 2 || r.Totals.Missing != 1 ||
		r.Totals.DistinctIDs != 3 || !r.Range.Whole {
		t.Errorf("%+v", r.Totals)
	}
	want := []report.Count{{Name: "forwarded", Records: 4}, {Name: "duplicate", Records: 1},
		{Name: "conflict"}, {Name: "dead_lettered", Records: 1}}
	if diff := cmp.Diff(want, r.Run.Outcomes); diff != "" {
		t.Error(diff)
	}
	if a := r.TTL.Advised; len(a) != 2 || a[1].TTL != "4h10m" || r.TTL.Configured.TTL != "2h30m" ||
		*r.TTL.Configured.CaughtShare != 0.5 {
		t.Errorf("%+v", r.TTL)
	}
	if h := r.ByHeader; h == nil || len(h.Values) != 2 || h.Values[0].Name != "p0" ||
		h.Values[0].Duplicates != 2 {
		t.Errorf("%+v", h)
	}
	for args, records := range map[string]int64{"--from=150m": 3, "--to=150m": 3,
		"--max-records=2": 2} {
		if r := read(args); r.Totals.Records != records || r.Range.Whole {
			t.Errorf("%s: %+v", args, r.Totals)
		}
	}
	page := filepath.Join(t.TempDir(), "orders.html")
	if code, text := kdedup(
		t.Context(), "report", "-c", path, "--output", page,
	); code != 0 || strings.Contains(text, "Duplicates on orders") {
		t.Errorf("exit code %d: %s", code, text)
	}
	if html, err := os.ReadFile(page); err != nil ||
		!strings.Contains(string(html), "Duplicates on orders") {
		t.Errorf("%v: %s", err, html)
	}
	if code, text := kdedup(t.Context(), "report", "-c", path); code != 0 ||
		!strings.Contains(text, "33.3 % of 6 records are copies") {
		t.Errorf("exit code %d: %s", code, text)
	}
	wantUntouched(t, brokers, path)
}

// wantUntouched sees to it that a report left nothing: no topic, no group, no store.
func wantUntouched(t *testing.T, brokers []string, path string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	topics, err := admin.ListTopics(t.Context())
	if err != nil || len(topics) != 1 {
		t.Errorf("topics: %v, %v", topics.Names(), err)
	}
	groups, err := admin.ListGroups(t.Context())
	if err != nil || len(groups) != 0 {
		t.Errorf("groups: %v, %v", groups, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, store, _ := strings.Cut(string(text), `{path: "`)
	store, _, _ = strings.Cut(store, `"`)
	if _, err := os.Stat(store); !os.IsNotExist(err) {
		t.Errorf("the store %s: %v", store, err)
	}
}

func TestAReportIsRefusedWithTheReason(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "payments"))
	path := write(t, brokers, ordersTopic)
	for _, c := range []struct {
		args []string
		code int
		text string
	}{
		{[]string{"--format", "pdf"}, 2, `--format must be table, json or html, got "pdf"`},
		{[]string{"--from", "yesterday"},
			2,
			`--from must be a time as 2026-01-31T12:00:00Z, or how long ago, as 72h; got "yesterday"`},
		{[]string{"--to", "-3h"}, 2, "--to must be a time"},
		{[]string{"--from", "1h", "--to", "2h"}, 2, "--from must be before --to"},
		{[]string{"--max-records", "-1"}, 2, "--max-records must not be negative"},
		{[]string{"--topic", "none"}, 2, "--topic must be one of orders"},
		{nil, 1, "topic orders does not exist"},
	} {
		code, text := kdedup(t.Context(), append([]string{"report", "-c", path}, c.args...)...)
		if code != c.code || !strings.Contains(text, c.text) {
			t.Errorf("%v: exit code %d, want %d with %q:\n%s", c.args, code, c.code, c.text, text)
		}
	}
}
