package e2e_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// The only broker goes, gracefully and as in a crash, and comes back. The processes need no help.
func TestABrokerRestartOnlyDelays(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	servers.Need(t)
	deliveries(t, func(t *testing.T, delivery string) {
		kafka, err := servers.StartKafka(t.Context(),
			servers.KafkaOptions{Dir: t.TempDir(), Heap: "384m"})
		servers.ForTest(t, kafka, err)
		store := fmt.Sprintf("{type: embedded, embedded: {path: %q}}", t.TempDir())
		d := deployAt(t, place{brokers: []string{kafka.Addr()}, store: store}, delivery,
			"batch_records: 500")
		d.produce(60_000, 11)
		one := d.start("one")
		d.waitFor(0.1)
		if err := kafka.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.waitFor(0.4)
		kafka.Kill()
		if err := kafka.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.waitFor(1)
		one.waitReady()
		d.mustLoseNothing()
		one.stop()
	})
}

// A static member that comes back within the session timeout moves no partition of the others. It
// joins second: one that has given partitions away since it joined comes back with a rebalance that
// moves none.
func TestARestartOfAStaticMemberMovesNothing(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	deliveries(t, func(t *testing.T, delivery string) {
		d := deploy(t, delivery, "static_membership: true", "lanes: 1", "session_timeout: 30s")
		one := d.start("one")
		one.waitReady()
		two := d.start("two")
		two.waitReady()
		d.produce(5000, 12)
		d.waitFor(1)
		before := one.counter("kdedup_rebalances_total")
		two.stop()
		two = d.start("two")
		two.waitReady()
		d.produce(5000, 13)
		d.waitFor(1)
		if after := one.counter("kdedup_rebalances_total"); after != before {
			t.Errorf("the other member got %v assignments", after-before)
		}
		d.mustBeClean()
	})
}

// counter sums a counter's series.
func (i *instance) counter(name string) (sum float64) {
	i.t.Helper()
	for _, metric := range i.scrape()[name].GetMetric() {
		sum += metric.GetCounter().GetValue()
	}
	return sum
}

// Whether a process notices that the input is gone or that it is another one, depends on the
// moment. In the first case it goes on with the new topic by itself, in the second it ends and asks
// for a reset.
func TestNothingOfARecreatedInputIsSkipped(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	deliveries(t, func(t *testing.T, delivery string) {
		d := deploy(t, delivery, "batch_records: 500")
		d.produce(40_000, 14)
		one, starts := d.start("one"), 1
		d.waitFor(0.1)
		d.recreateInput()
		const n = 20_000
		d.produceNew(n)
		testkit.Eventually(t, 3*time.Minute, "the new topic done", func() bool {
			if one.over() && starts < 4 {
				if code := one.cmd.ProcessState.ExitCode(); code != 1 {
					t.Fatalf("exit code %d", code)
				}
				if err := d.forgetGroup(t.Context()); err != nil {
					t.Fatal(err)
				}
				one = d.start("one")
				starts++
			}
			return d.done()
		})
		t.Logf("%d starts", starts)
		d.checkNew(n)
	})
}

// done reports whether the group's offsets are at the end of each partition.
func (d *deployment) done() bool {
	offsets, err := d.admin.FetchOffsets(d.t.Context(), d.group)
	if err != nil {
		return false
	}
	ends, err := d.admin.ListEndOffsets(d.t.Context(), d.input)
	if err != nil || ends.Error() != nil {
		return false
	}
	all := true
	ends.Each(func(o kadm.ListedOffset) {
		at, ok := offsets.Lookup(d.input, o.Partition)
		all = all && ok && at.At == o.Offset
	})
	return all
}

// newID is above every ID that produce makes.
const newID = 1_000_000

func (d *deployment) produceNew(n int) {
	d.t.Helper()
	records := make([]*kgo.Record, n)
	for i := range records {
		records[i] = d.record(newID+i, 0, i)
	}
	if err := d.client.ProduceSync(d.t.Context(), records...).FirstErr(); err != nil {
		d.t.Fatal(err)
	}
}

// checkNew: each new ID is on the clean topic; once with exactly_once.
func (d *deployment) checkNew(n int) {
	d.t.Helper()
	first := fmt.Sprintf("%s/%08d", d.input, newID)
	found := make(map[string]int)
	for _, records := range d.read(d.output()) {
		for _, r := range records {
			if r.id >= first {
				found[r.id]++
			}
		}
	}
	if len(found) != n {
		d.t.Errorf("%d of %d new IDs are on the clean topic", len(found), n)
	}
	for id, times := range found {
		if times > 1 && d.delivery == "exactly_once" {
			d.t.Errorf("%s is %d times on the clean topic", id, times)
		}
	}
}

func (d *deployment) recreateInput() {
	d.t.Helper()
	if _, err := d.admin.DeleteTopic(d.t.Context(), d.input); err != nil {
		d.t.Fatal(err)
	}
	testkit.Eventually(d.t, time.Minute, "the input again", func() bool {
		_, err := d.admin.CreateTopic(d.t.Context(), partitions, 1, nil, d.input)
		return err == nil
	})
	d.connect() // the first client would go on with the ID of the topic that is gone
}

// forgetGroup resets the group, as the log asks for.
func (d *deployment) forgetGroup(ctx context.Context) error {
	_, err := d.admin.DeleteGroup(ctx, d.group)
	return err
}
