package e2e_test

import (
	"encoding/json"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

func TestTheReportSaysWhatRunDoes(t *testing.T) {
	t.Parallel()
	const n = 20_000
	d := deploy(t, exactlyOnce)
	d.produce(n, 21)
	var found struct {
		Totals struct {
			Records     int64
			DistinctIDs int64 `json:"distinct_ids"`
		}
		Run struct {
			Outcomes []struct {
				Name    string
				Records int
			}
		}
	}
	cmd := exec.CommandContext(t.Context(), kdedup, "report", "-c", d.config, "--format", "json")
	cmd.Env = testkit.Environment()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if committed, _ := d.progress(); committed != 0 || found.Totals.Records != n {
		t.Errorf("%d records committed by the report, which has %d", committed,
			found.Totals.Records)
	}
	one := d.start("one")
	d.waitFor(1)
	testkit.Eventually(t, time.Minute, "outcomes that add up to the records read", func() bool {
		return total(one.outcomes()) == n
	})
	done := one.outcomes()
	said := make(map[string]int)
	for _, o := range found.Run.Outcomes {
		said[o.Name] = o.Records
	}
	for name := range said {
		if diff := cmp.Diff(said[name], done[name]); diff != "" {
			t.Errorf("%s: -said +done: %s", name, diff)
		}
	}
	if v := d.check(); int64(v.ids) != found.Totals.DistinctIDs || v.lost > 0 || v.doubled > 0 {
		t.Errorf("%+v, the report has %d ids", v, found.Totals.DistinctIDs)
	}
}

// Another forwarder has emitted a part. The backfill claims it, twice; then it runs beside the
// pipeline, and again after that was killed: no message is lost or emitted twice by that.
func TestABackfillBeforeAndBesideThePipeline(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	deliveries(t, func(t *testing.T, delivery string) {
		d := deploy(t, delivery, killed...)
		d.produce(20_000, 22)
		emitted := d.emitBefore(600)
		if got := claimed(t, d.command("backfill")); got != emitted {
			t.Errorf("%d IDs claimed, %d were emitted", got, emitted)
		}
		if got := claimed(t, d.command("backfill")); got != 0 {
			t.Errorf("%d IDs claimed again", got)
		}
		one := d.start("one")
		d.waitFor(0.2)
		d.command("backfill", "--force")
		one.kill()
		d.start("one")
		d.command("backfill", "--force")
		d.waitFor(1)
		d.mustLoseNothing()
	})
}

// emitBefore copies the first records of each input partition to the clean topic, as a forwarder
// did that knows the IDs it has seen. It returns how many.
func (d *deployment) emitBefore(each int) (ids int) {
	d.t.Helper()
	seen := make(map[string]bool)
	taken := make(map[int32]int)
	var records []*kgo.Record
	testkit.ReadCommitted(d.t, d.input, func(r *kgo.Record) {
		id := string(r.Headers[1].Value)
		if taken[r.Partition]++; taken[r.Partition] > each || seen[id] {
			return
		}
		seen[id] = true
		records = append(records, &kgo.Record{
			Topic: d.output(), Partition: r.Partition, Key: r.Key, Value: r.Value,
			Headers: r.Headers, Timestamp: r.Timestamp,
		})
	}, kgo.SeedBrokers(d.brokers...))
	if err := d.client.ProduceSync(d.t.Context(), records...).FirstErr(); err != nil {
		d.t.Fatal(err)
	}
	return len(seen)
}

var claimedRow = regexp.MustCompile(`(?m)^ *claimed +(\d+)`)

func claimed(t *testing.T, table string) int {
	t.Helper()
	match := claimedRow.FindStringSubmatch(table)
	if match == nil {
		t.Fatalf("no number of claims in:\n%s", table)
	}
	n, err := strconv.Atoi(match[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
