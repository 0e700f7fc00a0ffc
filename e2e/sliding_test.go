package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

// The ttl is long enough for a killed member's partitions to come to another one within it, and for
// a machine that is busy.
const (
	slidingTTL = 30 * time.Second
	slidingIDs = 400
)

// Copies keep coming for longer than the ttl, while processes are killed and come back.
func TestCopiesKeepTheirIDsWhileProcessesAreKilled(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	for name, at := range map[string]func(*testing.T) place{
		"kafka":          func(t *testing.T) place { return onClaimLog(t, "files") },
		"cassandra":      realServers,
		"cassandra log":  func(t *testing.T) place { return onCassandraLog(t, "memory") },
		"embedded, once": func(t *testing.T) place { return embeddedBesideKafka(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			copiesWhileKilled(t, at(t), !strings.HasPrefix(name, "embedded"))
		})
	}
}

// embeddedBesideKafka is a store for one process.
func embeddedBesideKafka(t *testing.T) place {
	t.Helper()
	return place{brokers: testkit.Kafka(t), store: embeddedStore(t)}
}

func copiesWhileKilled(t *testing.T, at place, two bool) {
	t.Helper()
	d := deployAt(t, at, exactlyOnce, append([]string{"ttl: " + slidingTTL.String(),
		"ttl_from: last"}, killed...)...)
	d.largest = 200
	names := []string{"one"}
	if two {
		names = append(names, "two")
	}
	running := make([]*instance, len(names))
	for i, name := range names {
		running[i] = d.start(name)
	}
	// The second half of the IDs gets no copies until the end.
	const kept = slidingIDs / 2
	d.copies(0, slidingIDs, 0)
	d.waitFor(1)
	first := time.Now()
	round, longest, renewed := 1, time.Duration(0), first
	for ; time.Since(first) < 5*slidingTTL/2; round++ {
		d.copies(0, kept, round)
		victim := round % len(running)
		running[victim].kill()
		running[victim] = d.start(names[victim])
		d.waitFor(1)
		longest, renewed = max(longest, time.Since(renewed)), time.Now()
	}
	if longest > slidingTTL/2 {
		t.Fatalf("a round took %v, of a ttl of %v: the machine is too slow for a verdict", longest,
			slidingTTL)
	}
	d.copies(0, slidingIDs, round)
	d.waitFor(1)
	for _, i := range running {
		i.stop()
	}
	d.check() // the bytes, and their order
	found := make(map[string]int)
	for _, records := range d.read(d.output()) {
		for _, r := range records {
			found[r.id]++
		}
	}
	for id := range slidingIDs {
		want := 1
		if id >= kept {
			want = 2
		}
		if got := found[d.idOf(id)]; got != want {
			t.Errorf("id %d is %d times in the clean topic, want %d", id, got, want)
		}
	}
	t.Logf("%d rounds of copies and kills, the longest took %v", round, longest)
}

// copies writes one copy of each ID from a number up to another.
func (d *deployment) copies(from, to, round int) {
	d.t.Helper()
	records := make([]*kgo.Record, 0, to-from)
	for id := from; id < to; id++ {
		records = append(records, d.record(id, round, (round+1)*1_000_000+id))
	}
	if err := d.client.ProduceSync(d.t.Context(), records...).FirstErr(); err != nil {
		d.t.Fatal(err)
	}
}

func (d *deployment) idOf(id int) string { return fmt.Sprintf("%s/%08d", d.input, id) }
