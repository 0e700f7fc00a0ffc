package process

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/internal/testkit"
)

// tenants is an entry with a pattern, for pipelines of one lane.
func tenants(more ...string) string {
	lines := append([]string{
		"input: {pattern: 'tenant-.*'}", `output: "{topic}.clean"`,
		`consumer_group: "{topic}-dedup"`, "message_id: {from: key}", "on_missing_id: drop",
		"session_timeout: 6s", "lanes: 1",
	}, more...)
	return "  - " + strings.Join(lines, "\n    ") + "\n"
}

func (r *reloading) create(topics ...string) {
	r.t.Helper()
	if _, err := r.admin.CreateTopics(r.t.Context(), 2, 1, nil, topics...); err != nil {
		r.t.Fatal(err)
	}
}

func (r *reloading) remove(topic string) {
	r.t.Helper()
	if _, err := r.admin.DeleteTopic(r.t.Context(), topic); err != nil {
		r.t.Fatal(err)
	}
}

// setup is kdedup setup.
func (r *reloading) setup() {
	r.t.Helper()
	log := slog.New(slog.DiscardHandler)
	c, err := r.read()
	if err == nil {
		c, err = connect.ExpandFor(r.t.Context(), c, log, func(string) {})
	}
	if err == nil {
		err = connect.Setup(r.t.Context(), c, log, false, func(string) {})
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *reloading) waitRunning(input string, runs bool) {
	r.t.Helper()
	testkit.Eventually(r.t, time.Minute, "the pipeline of "+input+" has come or gone", func() bool {
		return (r.process.active.Load().find(input+"-dedup") != nil) == runs
	})
}

func (r *reloading) waitLogged(text string) {
	r.t.Helper()
	testkit.Eventually(r.t, time.Minute, "the log has: "+text, func() bool {
		return strings.Contains(r.log.String(), text)
	})
}

func (r *reloading) hasSeriesOf(input string) bool {
	r.t.Helper()
	for _, series := range testkit.ReadMetrics(r.t, r.process.registry) {
		for _, s := range series {
			if testkit.HasLabel(s, "topic", input) {
				return true
			}
		}
	}
	return false
}

func TestTopicsOfAPatternComeAndGoWhileItRuns(t *testing.T) {
	r := startReloading(t, neverLook)
	before := r.settled("orders", 2)
	r.create("tenant-a")
	r.write(orders(), payments(), tenants("auto_setup: true"))
	r.reload()
	r.drain("tenant-a", 10)
	r.create("tenant-b", "tenant-c")
	r.waitRunning("tenant-b", true)
	r.drain("tenant-b", 10)
	r.drain("tenant-c", 10)
	r.remove("tenant-b")
	r.waitRunning("tenant-b", false)
	testkit.Eventually(t, time.Minute, "no series of it", func() bool {
		return !r.hasSeriesOf("tenant-b")
	})
	r.drain("tenant-a", 10)
	r.untouched("orders", before)
	r.waitReady()
	for _, name := range []string{"tenant-a.clean", "tenant-a-dedup.fence", "tenant-b.clean"} {
		if r.process.active.Load().find(name+"-dedup") != nil {
			t.Errorf("%s became an input", name)
		}
	}
}

func TestATopicOfAPatternWaitsForItsSetup(t *testing.T) {
	r := startReloading(t, neverLook)
	r.create("tenant-a")
	r.write(orders(), payments(), tenants())
	r.setup()
	r.reload()
	r.drain("tenant-a", 10)
	r.create("tenant-b")
	r.waitLogged("topics[2] (tenant-b): topic tenant-b.clean does not exist")
	if got := r.value("kdedup_topics_waiting"); got != 1 {
		t.Errorf("kdedup_topics_waiting is %v", got)
	}
	r.drain("tenant-a", 10)
	r.setup()
	r.waitRunning("tenant-b", true)
	r.drain("tenant-b", 10)
	testkit.Eventually(t, time.Minute, "none waits", func() bool {
		return r.value("kdedup_topics_waiting") == 0
	})
	if n := strings.Count(r.log.String(), "tenant-b.clean does not exist"); n != 1 {
		t.Errorf("the log tells it %d times", n)
	}
}

// Kafka forgets the group's offsets with the topic, and the fence is that of another topic ID: so
// all of the new topic is read.
func TestARecreatedTopicOfAPatternIsReadFromItsBeginning(t *testing.T) {
	r := startReloading(t, neverLook)
	before := r.settled("orders", 2)
	r.create("tenant-a", "tenant-b")
	r.write(orders(), payments(), tenants("auto_setup: true"))
	r.reload()
	r.drain("tenant-a", 10)
	r.drain("tenant-b", 10)
	was := r.process.active.Load().find("tenant-a-dedup")
	r.remove("tenant-a")
	r.create("tenant-a")
	r.produce("tenant-a", 7)
	testkit.Eventually(t, time.Minute, "all of the new topic was forwarded", func() bool {
		n := r.forwarded("tenant-a") // its counters begin again if a look saw that it was away
		return r.process.active.Load().find("tenant-a-dedup") != was && (n == 17 || n == 7)
	})
	r.drain("tenant-b", 10)
	r.untouched("orders", before)
}

func TestAFileThatBringsTwoPatternsIntoConflictIsRefused(t *testing.T) {
	r := startReloading(t, neverLook)
	r.create("tenant-a")
	r.write(orders(), payments(), tenants("auto_setup: true"))
	r.reload()
	r.drain("tenant-a", 10)
	other := strings.NewReplacer("{topic}", "new.{topic}").Replace(tenants("auto_setup: true"))
	r.write(orders(), payments(), tenants("auto_setup: true"), other)
	line := r.reload()
	for _, want := range []string{"configuration refused", "the pipeline of tenant-a would end",
		"topics[3].input.pattern: matches tenant-a, as the pattern of topics[2] does"} {
		if !strings.Contains(line, want) {
			t.Errorf("%q is missing in: %s", want, line)
		}
	}
	r.create("tenant-b") // a look is no reload
	r.waitRunning("tenant-b", true)
	r.drain("tenant-a", 10)
	if r.value("kdedup_config_last_reload_successful") != 0 {
		t.Error("the metric does not tell")
	}
}

// A topic that waits for its setup was there at the first start: what it had then is not read, what
// came since is. A topic that comes later is read from its beginning.
func TestAPatternThatStartsAtTheEndDoesSoOnce(t *testing.T) {
	r := startReloading(t, neverLook)
	r.create("tenant-a", "tenant-b")
	r.produce("tenant-a", 7)
	r.produce("tenant-b", 7)
	r.write(orders(), payments(), tenants("start: latest"))
	r.reload()
	r.waitLogged("topics[2] (tenant-b): topic tenant-b.clean does not exist")
	delete(r.sent, "tenant-a")
	delete(r.sent, "tenant-b")
	r.produce("tenant-a", 3)
	r.create("tenant-c")
	r.produce("tenant-c", 5)
	r.setup()
	for _, input := range []string{"tenant-a", "tenant-b", "tenant-c"} {
		r.waitRunning(input, true)
		r.drain(input, 10)
	}
	if got := r.value("kdedup_input_skipped_offsets_total"); got != 14 {
		t.Errorf("told of %v skipped offsets, want 14", got)
	}
}
