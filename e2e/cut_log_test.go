package e2e_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/kdedup/kdedup/internal/testkit"
)

// Brokers 2 and 3 have the input, broker 1 has all else. Broker 3 is away while records come, which
// are forwarded. Then it leads, without them, and its log grows beyond what was handled. The
// group's offsets have no leader epoch, as most tools commit them, so the client does not notice.
func TestALogThatAnUncleanElectionCutIsReadFromThereOn(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	deliveries(t, func(t *testing.T, delivery string) {
		wait := func(kadm.TopicsSet) {}
		first := broker(t, nil, nil)
		d := deployAt(t, place{brokers: []string{first.Addr()}, store: embeddedStore(t)},
			delivery)
		produce := d.traffic(43)
		produce(2000)
		one := d.start("one")
		d.waitFor(1)
		second, third := broker(t, first, nil),
			broker(t, first, map[string]string{"node.id": "3"})
		d.replicate(d.input, 2, 3)
		d.electUncleanly()

		third.Kill()
		d.waitLed(d.input, 2, 1, wait)
		produce(800)
		d.waitFor(1)
		one.stop()
		second.Kill()
		if err := third.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.waitLed(d.input, 3, 1, wait)
		d.commitWithoutEpochs()
		d.connect() // a producer that knows nothing of what is gone
		produce(2000)

		one = d.start("one")
		d.waitFor(1)
		one.stop()
		d.waitStable(d.output())
		// what was cut off is on the clean topic alone, so there is no order to compare
		if v := d.count(d.read(d.input), d.read(d.output())); v.lost > 0 || v.doubled > 0 {
			t.Errorf("%d lost, %d doubled", v.lost, v.doubled)
		}
	})
}

// electUncleanly lets a replica lead the input that lacks records.
func (d *deployment) electUncleanly() {
	d.t.Helper()
	yes := "true"
	answers, err := d.admin.AlterTopicConfigs(d.t.Context(), []kadm.AlterConfig{{
		Op: kadm.SetConfig, Name: "unclean.leader.election.enable", Value: &yes}}, d.input)
	if err == nil {
		_, err = answers.On(d.input, nil)
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// commitWithoutEpochs commits the group's offsets as they are, as a tool would.
func (d *deployment) commitWithoutEpochs() {
	d.t.Helper()
	fetched, err := d.admin.FetchOffsets(d.t.Context(), d.group)
	if err != nil {
		d.t.Fatal(err)
	}
	offsets := fetched.Offsets()
	for _, partitions := range offsets {
		for p, at := range partitions {
			at.LeaderEpoch = -1
			partitions[p] = at
		}
	}
	if err := d.admin.CommitAllOffsets(d.t.Context(), d.group, offsets); err != nil {
		d.t.Fatal(err)
	}
}
