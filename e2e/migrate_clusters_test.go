package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// docs/recipes/migrate-clusters.md, as it stands there: its files and its commands, with a real
// MirrorMaker 2. Each program is killed in each step, and each message is there once.
func TestAMigrationBetweenClustersLosesAndDoublesNothing(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	at, _ := onTwoClusters(t)
	old := prepare(t, at, exactlyOnce)
	old.group = old.input + "-dedup"
	now := *old
	now.brokers, now.forwards, now.group = at.output, nil, old.input+"-dedup-new"
	now.connect()
	page := readMigration(t, old)
	old.config, now.config = page.files[0], page.files[1]
	of := map[string]*deployment{"old.yaml": old, "new.yaml": &now}
	old.produce(10_000, 53)

	page.step(of, "setup", "old.yaml")
	one := page.step(of, "run", "old.yaml")
	old.waitFor(0.5)

	mirror, err := servers.StartMirror(t.Context(), servers.MirrorOptions{Dir: t.TempDir(),
		From: at.brokers[0], To: at.output[0], Topics: old.input})
	servers.ForTest(t, mirror, err)
	mirrored := func(share int64) func() bool {
		return func() bool { _, end := now.progress(); return 100*end >= share*10_000 }
	}
	testkit.Eventually(t, 3*time.Minute, "some of the input on the new cluster", mirrored(30))
	mirror.Kill()
	if err := mirror.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	one.kill()
	one = old.start("one")
	one.waitReady()
	one.stop()

	page.step(of, "setup", "new.yaml")
	page.step(of, "backfill", "new.yaml")
	two := page.step(of, "run", "new.yaml")
	now.producersMove(old)
	testkit.Eventually(t, 3*time.Minute, "most of the input on the new cluster", mirrored(120))
	mirror.Kill()
	two.kill()
	two = now.start("two")
	if err := mirror.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	two.waitReady()
	all := len(old.inputIDs(nil))
	testkit.Eventually(t, 3*time.Minute, "all of the input on the new cluster", func() bool {
		return len(now.inputIDs(nil)) == all+moved
	})
	if err := mirror.Stop(); err != nil {
		t.Fatal(err)
	}
	now.waitFor(1)
	two.stop()
	now.eachOnce(old)
}

// migration is what the page has.
type migration struct {
	t        *testing.T
	files    []string
	commands []string
}

func readMigration(t *testing.T, d *deployment) migration {
	t.Helper()
	text, err := os.ReadFile("../docs/recipes/migrate-clusters.md")
	if err != nil {
		t.Fatal(err)
	}
	m := migration{t: t}
	names := strings.NewReplacer(`"old-1:9092"`, `"`+d.brokers[0]+`"`, `"new-1:9092"`,
		`"`+d.forwards[0]+`"`, "orders", d.input, "store: {type: kafka}",
		"store: {type: kafka, kafka: {index: memory}}")
	for i, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1) {
		path := filepath.Join(t.TempDir(), []string{"old.yaml", "new.yaml"}[i])
		content := names.Replace(string(block[1])) + "server: {listen: \"127.0.0.1:0\"}\n"
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		m.files = append(m.files, path)
	}
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllSubmatch(text, -1) {
		m.commands = append(m.commands, strings.Split(strings.TrimSpace(string(block[1])), "\n")...)
	}
	return m
}

// step is the next command of the page: first it is killed, then it comes to its end, or runs.
func (m *migration) step(of map[string]*deployment, command, file string) *instance {
	m.t.Helper()
	if len(m.commands) == 0 || m.commands[0] != "kdedup "+command+" -c "+file {
		m.t.Fatalf("the page goes on with %q, not with %s of %s", m.commands, command, file)
	}
	m.commands = m.commands[1:]
	d := of[file]
	if command == "run" {
		i := d.start("one")
		testkit.Eventually(m.t, 2*time.Minute, "some records are handled", func() bool {
			return total(i.outcomes()) > 500
		})
		i.kill()
		i = d.start("one")
		i.waitReady()
		return i
	}
	cmd := exec.CommandContext(m.t.Context(), kdedup, command, "-c", d.config)
	cmd.Env = testkit.Environment()
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	idle(m.t, 300*time.Millisecond)
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // killed, or over already
	d.command(command)
	return nil
}

const moved = 2000 // IDs that producers send to the new cluster alone

// producersMove has some records of the old cluster come again, from producers that had no answer,
// and others for the first time.
func (d *deployment) producersMove(old *deployment) {
	d.t.Helper()
	var again []*kgo.Record
	testkit.ReadCommitted(d.t, old.input, func(r *kgo.Record) {
		if r.Offset < 100 {
			again = append(again, &kgo.Record{Topic: r.Topic, Partition: r.Partition, Key: r.Key,
				Value: r.Value, Headers: r.Headers})
		}
	}, kgo.SeedBrokers(old.brokers...))
	for i := range moved {
		again = append(again, d.record(100_000+i, 0, 100_000+i))
	}
	if err := d.client.ProduceSync(d.t.Context(), again...).FirstErr(); err != nil {
		d.t.Fatal(err)
	}
}

// inputIDs adds those of the input.
func (d *deployment) inputIDs(ids map[string]bool) map[string]bool {
	d.t.Helper()
	if ids == nil {
		ids = make(map[string]bool)
	}
	for _, records := range d.read(d.input) {
		for _, r := range records {
			ids[r.id] = true
		}
	}
	return ids
}

// eachOnce wants each ID of both inputs once on the clean topic.
func (d *deployment) eachOnce(old *deployment) {
	d.t.Helper()
	d.waitStable(d.output())
	ids, found := d.inputIDs(old.inputIDs(nil)), make(map[string]int)
	testkit.ReadCommitted(d.t, d.output(), func(r *kgo.Record) {
		found[string(r.Headers[1].Value)]++
	}, kgo.SeedBrokers(d.brokers...))
	lost, doubled := 0, 0
	for id := range ids {
		if found[id] == 0 {
			lost++
		}
		doubled += max(0, found[id]-1)
	}
	d.t.Logf("%d ids, %d lost, %d doubled", len(ids), lost, doubled)
	if lost > 0 || doubled > 0 || len(ids) < 10_000 {
		d.t.Errorf("%d ids, %d lost, %d doubled", len(ids), lost, doubled)
	}
}
