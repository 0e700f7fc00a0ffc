package e2e_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// Brokers 2 and 3 have the input, broker 1 has all else. Broker 3 is away while records come, which
// are forwarded. Then it leads, without them, and its log grows beyond what was handled. The
// group's offsets have no leader epoch, as most tools commit them, so the client does not notice.
func TestALogThatAnUncleanElectionCutIsReadFromThereOn(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	deliveries(t, func(t *testing.T, delivery string) {
		first := broker(t, nil, 1)
		d := deployAt(t, place{brokers: []string{first.Addr()}, store: embeddedStore(t)},
			delivery)
		produce := d.traffic(43)
		produce(2000)
		one := d.start("one")
		d.waitFor(1)
		second, third := broker(t, first, 2), broker(t, first, 3)
		d.replicate(d.input, 2, 3)
		d.electUncleanly()

		third.Kill()
		d.waitLed(2, 1)
		produce(800)
		d.waitFor(1)
		one.stop()
		second.Kill()
		if err := third.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.waitLed(3, 1)
		d.commitWithoutEpochs()
		d.connect() // a producer that knows nothing of what is gone
		produce(2000)

		one = d.start("one")
		d.waitFor(1)
		one.stop()
		d.mustHaveEachIDOnce()
	})
}

// broker starts one that joins the first one, or is the first one.
func broker(t *testing.T, first *servers.Server, node int) *servers.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	s, err := servers.StartKafka(ctx, servers.KafkaOptions{
		Dir: filepath.Join(t.TempDir(), "kafka"), Joins: first, Heap: "400m",
		Config: map[string]string{"node.id": fmt.Sprint(node)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
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

// waitLed returns when a broker leads all partitions of the input, which have as many replicas that
// are in sync.
func (d *deployment) waitLed(by int32, inSync int) {
	d.t.Helper()
	what := fmt.Sprint("partitions that are led by ", by)
	testkit.Eventually(d.t, time.Minute, what, func() bool {
		details, err := d.admin.ListTopics(d.t.Context(), d.input)
		if err != nil || len(details[d.input].Partitions) != partitions {
			return false
		}
		for _, p := range details[d.input].Partitions {
			if p.Leader != by || len(p.ISR) != inSync {
				return false
			}
		}
		return true
	})
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

// mustHaveEachIDOnce wants each ID of the input once on the clean topic, which may have more.
func (d *deployment) mustHaveEachIDOnce() {
	d.t.Helper()
	d.waitStable(d.output())
	found := make(map[string]int)
	for _, records := range d.read(d.output()) {
		for _, r := range records {
			found[r.id]++
		}
	}
	lost := make(map[string]bool)
	for _, records := range d.read(d.input) {
		for _, r := range records {
			if found[r.id] == 0 {
				lost[r.id] = true
			}
		}
	}
	doubled := 0
	for _, n := range found {
		doubled += n - 1
	}
	d.t.Logf("%d ids on the clean topic, %d lost, %d doubled", len(found), len(lost), doubled)
	if len(lost) > 0 || doubled > 0 {
		d.t.Errorf("%d lost, %d doubled", len(lost), doubled)
	}
}
