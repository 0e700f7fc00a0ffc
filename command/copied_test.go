package command

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/kdedup/kdedup/internal/testkit"
)

// commit leaves the group an offset of partition 0, with a text beside it.
func (p *place) commit(at int64, text string) {
	p.t.Helper()
	offsets := make(kadm.Offsets)
	offsets.Add(kadm.Offset{Topic: p.input, At: at, LeaderEpoch: -1, Metadata: text})
	if err := kadm.NewClient(p.client).CommitAllOffsets(p.t.Context(), p.input+"-dedup",
		offsets); err != nil {
		p.t.Fatal(err)
	}
}

// MirrorMaker has brought the records, and the group's offsets with kdedup's marks
// (sync.group.offsets.enabled). Nobody has forwarded the records there.
func TestOffsetsThatAMirrorCopiedAreRefusedThere(t *testing.T) {
	for name, mark := range map[string]string{
		"of this version": "kdedup:2 source 0102030405060708090a0b0c0d0e0f10 orders-dedup",
		"of an earlier":   "kdedup:1",
	} {
		t.Run(name, func(t *testing.T) {
			_, brokers := testkit.FakeKafka(t, kfake.ClusterID("mirror"),
				kfake.SeedTopics(1, "orders"))
			p := newPlace(t, brokers, "orders", filepath.Join(t.TempDir(), "data"), "")
			p.produce("orders", "a", "b", "c")
			p.commit(3, mark)
			for _, command := range []string{"validate", "run"} {
				p.must(1, "orders[0] at 3; what is below them would not be forwarded; they bear "+
					"marks of kdedup that were not made here", command)
			}
			if _, err := kadm.NewClient(p.client).DeleteGroup(t.Context(),
				"orders-dedup"); err != nil {
				t.Fatal(err)
			}
			p.must(0, "", "validate")
			p.runUntil(3)
			if got := strings.Join(p.clean(), ""); got != "abc" {
				t.Errorf("clean topic: %s", got)
			}
		})
	}
}

// A group that an earlier version pinned, and to which no record has come since: it has no fence,
// and the store has noted that it is at home on this cluster.
func TestAnUpgradeBelievesTheMarksOfAGroupThatWasAtHome(t *testing.T) {
	testkit.Kafkas(t, 1, func(t *testing.T, brokers []string) {
		input := testkit.Topic(t, brokers, "orders", 1, nil)
		p := newPlace(t, brokers, input, filepath.Join(t.TempDir(), "data"),
			"    start: latest\n")
		p.produce(input, "old")
		r := start(t, p.path)
		testkit.Eventually(t, time.Minute, "the start has ended", func() bool {
			return strings.Contains(r.out.String(), "msg=ready")
		})
		r.stopsWell()
		admin := kadm.NewClient(p.client)
		if _, err := admin.DeleteTopic(t.Context(), input+"-dedup.fence"); err != nil {
			t.Fatal(err)
		}
		p.must(0, "", "setup", "--skip-self-test")
		p.commit(1, "kdedup:1")
		p.produce(input, "a", "b")
		p.must(0, "", "validate")
		p.runUntil(3)
		if got := strings.Join(p.clean(), ""); got != "ab" {
			t.Errorf("clean topic: %s", got)
		}
	})
}
