package command

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/internal/testkit"
)

// What another forwarder has emitted is claimed; the pipeline that begins then emits the rest.
func TestABackfillBeforeTheFirstRun(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	path := write(t, brokers, ordersTopic)
	if code, text := kdedup(t.Context(), "setup", "-c", path); code != 0 {
		t.Fatal(text)
	}
	produceKeys(t, brokers, "orders", "a", "b", "c", "a", "d")
	produceKeys(t, brokers, "orders.clean", "a", "b", "b", "")
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"--dry-run"}, []string{`records +4 `, `would be claimed +2`,
			`1 +by another record of the clean topic`, `missing +1`}},
		{nil, []string{`records +4 `, ` claimed +2`, `already owned +0 `, `missing +1`}},
		{nil, []string{` claimed +0`, `already owned +2 +by an earlier backfill`}},
		{[]string{"--dry-run"}, []string{`would be claimed +0`, `already owned +2`}},
	} {
		code, text := kdedup(t.Context(), append([]string{"backfill", "-c", path}, c.args...)...)
		for _, want := range c.want {
			if !regexp.MustCompile(want).MatchString(text) {
				t.Errorf("%v: %q is missing", c.args, want)
			}
		}
		if code != 0 || t.Failed() {
			t.Fatalf("%v: exit code %d:\n%s", c.args, code, text)
		}
	}
	if code, text := kdedup(t.Context(), "id", "lookup", "-c", path, "a"); code != 0 ||
		!strings.Contains(text, "yes: it stands on orders.clean") {
		t.Errorf("lookup: %d: %s", code, text)
	}
	r := start(t, path)
	url := r.url()
	testkit.Eventually(t, 2*time.Minute, "c and d forwarded, the others dropped", func() bool {
		metrics := get(t, url+"/metrics")
		return strings.Contains(metrics,
			`kdedup_records_total{outcome="forwarded",topic="orders"} 2`) &&
			strings.Contains(metrics, `kdedup_records_total{outcome="duplicate",topic="orders"} 3`)
	})
	if code, text := kdedup(t.Context(), "backfill", "-c", path); code != 1 ||
		!strings.Contains(text, "consumer group orders-dedup is active") {
		t.Errorf("beside run: %d: %s", code, text)
	}
	r.stop()
	<-r.code
	if code, text := kdedup(t.Context(), "backfill", "-c", path); code != 1 ||
		!strings.Contains(text, "has committed offset 5 of orders[0]: the pipeline has run") {
		t.Errorf("after run: %d: %s", code, text)
	}
	code, text := kdedup(t.Context(), "backfill", "-c", path, "--force")
	if code != 0 || !regexp.MustCompile(`2 +by a record of the input`).MatchString(text) {
		t.Errorf("forced: %d: %s", code, text)
	}
}

// A dry run makes no store.
func TestADryRunOfABackfillLeavesNothing(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	path := write(t, brokers, ordersTopic)
	produceKeys(t, brokers, "orders", "a")
	if code, text := kdedup(t.Context(), "backfill", "-c", path, "--dry-run"); code != 1 ||
		!strings.Contains(text, "topic orders.clean does not exist") {
		t.Errorf("%d: %s", code, text)
	}
	wantUntouched(t, brokers, path)
}

func TestABackfillThatWouldBlockOtherMessagesIsRefused(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	for extra, want := range map[string]string{
		`
  - {input: refunds, output: orders.clean, consumer_group: refunds-dedup, message_id: {from: key}, on_missing_id: drop}
`: "topics[1] writes orders.clean too, with IDs of another scope",
		`
  - {input: orders.clean, output: orders.twice, consumer_group: again, scope: orders, scope_group: orders-dedup, message_id: {from: key}, on_missing_id: drop}
`: "topics[1] reads orders.clean with the same scope",
	} {
		path := write(t, brokers, ordersTopic+extra)
		if code, text := kdedup(
			t.Context(), "backfill", "-c", path, "--topic", "orders",
		); code != 2 || !strings.Contains(text, want) {
			t.Errorf("%d, want 2 with %q: %s", code, want, text)
		}
	}
}

// On brokers that have never seen a consumer group, the question about the group waits. So the
// topics come first, and none of them is named as another's fault.
func TestABackfillLooksAtTheTopicsFirst(t *testing.T) {
	cluster, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	cluster.ControlKey(int16(kmsg.DescribeGroups), func(kmsg.Request) (kmsg.Response, error, bool) {
		t.Error("the group was asked about")
		return nil, nil, false
	})
	path := write(t, brokers, ordersTopic)
	for _, flags := range [][]string{nil, {"--dry-run"}, {"--force"}} {
		code, text := kdedup(t.Context(), append([]string{"backfill", "-c", path}, flags...)...)
		if code != 1 || !strings.Contains(text, "topic orders.clean does not exist") ||
			strings.Contains(text, "topic orders does not") {
			t.Errorf("%v: exit code %d: %s", flags, code, text)
		}
	}
}
