package process

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/process/server"
)

// A schema registry that is down holds up records of a schema that was not seen yet, and makes none
// of them a dead letter.
func TestRecordsWaitForTheSchemaRegistry(t *testing.T) {
	var down atomic.Bool
	down.Store(true)
	schemas := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case down.Load():
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path != "/schemas/ids/7":
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"error_code":40403}`)
		default:
			fmt.Fprint(w, `{"schema":"{\"type\":\"record\",\"name\":\"O\",\"fields\":[`+
				`{\"name\":\"id\",\"type\":\"string\"}]}"}`)
		}
	}))
	defer schemas.Close()
	cluster, brokers := testkit.FakeKafka(t, kfake.SeedTopics(4, "orders"))
	r := &reloading{t: t, cluster: cluster, path: filepath.Join(t.TempDir(), "kdedup.yaml"),
		ended: make(chan error, 1), sent: make(map[string]float64),
		head: head(t, brokers[0]) + fmt.Sprintf("schema_registry: {urls: [%q]}\n", schemas.URL)}
	r.write(strings.NewReplacer("{from: key}", "{from: avro, path: id}", "on_missing_id: drop",
		"on_missing_id: dead_letter").Replace(orders("dead_letter_topic: orders.dlq")))
	c, err := r.read()
	if err == nil {
		err = connect.Setup(t.Context(), c, slog.New(slog.DiscardHandler), false, func(string) {})
	}
	if err != nil {
		t.Fatal(err)
	}
	r.run(neverLook)
	r.waitReady()

	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, value := range []string{"\x00\x00\x00\x00\x07\x02a", "\x00\x00\x00\x00\x07\x02a",
		"\x00\x00\x00\x00\x08\x02a"} {
		record := &kgo.Record{Topic: "orders", Key: []byte("k"), Value: []byte(value)}
		if err := client.ProduceSync(t.Context(), record).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	check := func(ctx context.Context) (err error) {
		for _, c := range r.process.checks() {
			if c.Name == "schema registry" {
				err = c.Func(ctx)
			}
		}
		return err
	}
	testkit.Eventually(t, time.Minute, "the wait for the registry", func() bool {
		err := check(t.Context())
		return err != nil && strings.Contains(err.Error(), "answered 401") &&
			r.value("kdedup_blocked_seconds_total", "topic", "orders", "reason", "registry") > 0
	})
	blocked := func() bool {
		lanes := (&processStatus{r.process}).Snapshot().Pipelines[0].Lanes
		return slices.ContainsFunc(lanes, func(l server.Lane) bool {
			return l.State == server.LaneBlocked
		})
	}
	if !blocked() {
		t.Error("the page shows no lane that is blocked")
	}
	for _, outcome := range []string{"forwarded", "duplicate", "dead_lettered"} {
		if n := r.value("kdedup_records_total", "topic", "orders", "outcome", outcome); n > 0 {
			t.Errorf("%v records were %s without their schema", n, outcome)
		}
	}
	down.Store(false)
	for outcome, want := range map[string]float64{"forwarded": 1, "duplicate": 1,
		"dead_lettered": 1} {
		testkit.Eventually(t, time.Minute, outcome, func() bool {
			return r.value("kdedup_records_total", "topic", "orders", "outcome", outcome) == want
		})
	}
	if err := check(t.Context()); err != nil {
		t.Error(err)
	}
	if blocked() {
		t.Error("the page shows a lane as blocked that is not")
	}
}
