package e2e_test

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/internal/testkit"
)

// hiddenTransactions are requests that brokers and proxies of some platforms do not answer.
var hiddenTransactions = map[string][]kmsg.Key{
	"no transactions": {kmsg.AddPartitionsToTxn, kmsg.AddOffsetsToTxn, kmsg.TxnOffsetCommit,
		kmsg.EndTxn, kmsg.DescribeProducers, kmsg.DescribeTransactions, kmsg.ListTransactions},
	"no idempotent producers either": {kmsg.InitProducerID, kmsg.AddPartitionsToTxn,
		kmsg.AddOffsetsToTxn, kmsg.TxnOffsetCommit, kmsg.EndTxn, kmsg.DescribeProducers,
		kmsg.DescribeTransactions, kmsg.ListTransactions},
}

// Behind a proxy that lets no transactions through, every command refuses exactly_once, says where
// and why, and at_least_once works: through a kill, and through offsets that are set back, on a
// fence topic that keeps all fences.
func TestWithoutTransactionsAtLeastOnceIsOfferedAndWorks(t *testing.T) {
	t.Parallel()
	for name, hidden := range hiddenTransactions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := place{brokers: testkit.HidingProxies(t, testkit.Kafka(t), hidden...),
				store: embeddedStore(t)}
			d := prepare(t, at, exactlyOnce, killed...)
			d.refusesExactlyOnce("setup", "--skip-self-test")
			d.refusesExactlyOnce("setup", "--skip-self-test", "--dry-run")
			if topics, err := d.admin.ListTopics(t.Context(), d.output()); err != nil ||
				topics.Has(d.output()) {
				t.Error("setup made topics for a delivery that they cannot have", err)
			}
			d.createEndlessFence()
			d.delivery = atLeastOnce
			d = d.at(at)
			d.command("setup", "--skip-self-test")
			refused := *d
			refused.delivery = exactlyOnce
			for _, command := range []string{"validate", "run"} {
				refused.at(at).refusesExactlyOnce(command)
			}
			if said := d.command("validate"); !strings.Contains(said, "fence topic "+d.group+
				".fence is not compacted") {
				t.Errorf("validate says nothing of the fence topic:\n%s", said)
			}
			d.survivesAKillAndARewind()
		})
	}
}

func (d *deployment) refusesExactlyOnce(command ...string) {
	d.t.Helper()
	said, code := d.try(command...)
	for _, want := range []string{
		"topics[0].delivery: exactly_once needs Kafka transactions: the brokers, or a proxy " +
			"before them, do not answer ",
		"AddPartitionsToTxn", "set delivery: at_least_once",
	} {
		if code != 1 || !strings.Contains(said, want) {
			d.t.Errorf("kdedup %v: exit code %d, without %q:\n%s", command, code, want, said)
		}
	}
}

func (d *deployment) createEndlessFence() {
	d.t.Helper()
	if _, err := d.admin.CreateTopic(d.t.Context(), partitions, 1, map[string]*string{
		"cleanup.policy": kmsg.StringPtr("delete"), "retention.ms": kmsg.StringPtr("-1"),
		"retention.bytes": kmsg.StringPtr("-1"),
	}, d.group+".fence"); err != nil {
		d.t.Fatal(err)
	}
}

// tellFences logs what a fence takes on a topic that keeps all of them.
func (d *deployment) tellFences() {
	d.t.Helper()
	topic := d.group + ".fence"
	ends, err := d.admin.ListEndOffsets(d.t.Context(), topic)
	if err != nil {
		d.t.Fatal(err)
	}
	fences, bytes := int64(0), int64(0)
	ends.Each(func(end kadm.ListedOffset) { fences += end.Offset })
	all, err := d.admin.DescribeAllLogDirs(d.t.Context(), ends.Offsets().TopicsSet())
	if err != nil {
		d.t.Fatal(err)
	}
	all.Each(func(d kadm.DescribedLogDir) { bytes += d.Size() })
	d.t.Logf("%d fences in %d bytes", fences, bytes)
}

func (d *deployment) survivesAKillAndARewind() {
	d.t.Helper()
	d.produce(60_000, 61)
	one := d.start("one")
	one.waitReady()
	d.waitFor(0.2)
	one.kill()
	one = d.start("one")
	d.waitFor(1)
	const lanes, batch = 2, 1000
	v := d.check()
	if v.lost > 0 || v.doubled > lanes*batch {
		d.t.Errorf("%d lost, %d doubled, which is more than all lanes had in hand", v.lost,
			v.doubled)
	}
	one.stop()
	d.tellFences()
	offsets, err := d.admin.FetchOffsets(d.t.Context(), d.group)
	if err != nil {
		d.t.Fatal(err)
	}
	back := make(kadm.Offsets)
	offsets.Each(func(o kadm.OffsetResponse) { o.At = 0; back.Add(o.Offset) })
	if err := d.admin.CommitAllOffsets(d.t.Context(), d.group, back); err != nil {
		d.t.Fatal(err)
	}
	one = d.start("one")
	one.waitReady()
	d.waitFor(1)
	one.stop()
	if again := d.check(); again.lost > 0 || again.doubled != v.doubled {
		d.t.Errorf("after offsets were set back %d are lost and %d doubled, before it %d",
			again.lost, again.doubled, v.doubled)
	}
}
