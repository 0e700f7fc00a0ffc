package e2e_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kdedup/kdedup/internal/testkit"
)

// Two pipelines in one process work off a backlog. One is changed again and again: other batches,
// other lanes, the other delivery and back, gone and there again. The other one never notices.
func TestReloadsWhileRecordsFlowLoseAndDoubleNothing(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	deliveries(t, func(t *testing.T, delivery string) {
		at := realServers(t)
		steady, changed := deployAt(t, at, delivery, "batch_records: 500"),
			deployAt(t, at, delivery, "batch_records: 300", "lanes: 2")
		steady.produce(30_000, 21)
		changed.produce(30_000, 22)
		entry := changed.topics()
		steady.add(entry)
		// a batch that is cut off may be doubled
		one := steady.launch(kdedup, "one", "KDEDUP_SHUTDOWN_TIMEOUT=5m")
		one.waitShares(steady, 2)
		steady.waitFor(0.05)
		assigned := one.counterOf("kdedup_rebalances_total", steady.input)

		other := map[string]string{exactlyOnce: atLeastOnce, atLeastOnce: exactlyOnce}[delivery]
		for i, next := range []string{
			strings.NewReplacer("batch_records: 300", "batch_records: 200", "lanes: 2",
				"lanes: 1").Replace(entry),
			strings.Replace(entry, "delivery: "+delivery, "delivery: "+other, 1),
			entry,
		} {
			share := 0.1 * float64(i+1)
			changed.waitFor(share)
			one.reload(steady, next)
			one.refuse(steady, "topics: [")
			one.refuse(steady, strings.Replace(next, "buckets: 64", "buckets: 65", 1))
		}
		changed.waitFor(0.4)
		one.reload(steady, "")
		one.reload(steady, entry)
		steady.waitFor(1)
		changed.waitFor(1)
		after, failures := one.counterOf("kdedup_rebalances_total", steady.input),
			one.counterOf("kdedup_lane_failures_total", steady.input)
		if after != assigned && failures == 0 { // a busy broker ends sessions, too
			t.Errorf("the other pipeline got %v assignments", after-assigned)
		}
		for _, d := range []*deployment{steady, changed} {
			d.mustBeClean()
		}
		one.stop()
	})
}

// A file that changes is applied without a signal.
func TestAChangedFileIsApplied(t *testing.T) {
	t.Parallel()
	at := realServers(t)
	first, second := deployAt(t, at, exactlyOnce), deployAt(t, at, exactlyOnce)
	one := first.start("one")
	first.produce(1000, 23)
	second.produce(1000, 24)
	first.waitFor(1)
	before := one.gauge("kdedup_config_last_reload_success_timestamp_seconds")
	first.add(second.topics())
	testkit.Eventually(t, time.Minute, "the reload", func() bool {
		return one.gauge("kdedup_config_last_reload_success_timestamp_seconds") > before
	})
	second.waitFor(1)
	one.waitReady()
	for _, d := range []*deployment{first, second} {
		d.mustBeClean()
	}
	one.stop()
}

// waitShares returns when n lanes of the deployment have equal shares of its partitions.
func (i *instance) waitShares(d *deployment, lanes int) {
	i.t.Helper()
	testkit.Eventually(i.t, 5*time.Minute, "lanes with equal shares of "+d.input, func() bool {
		for _, p := range i.status().Pipelines {
			if p.Input == d.input {
				return !slices.ContainsFunc(p.Lanes, func(l lane) bool {
					return l.Partitions != partitions/lanes
				})
			}
		}
		return false
	})
}

// status is a part of /api/status.
type status struct {
	Pipelines []struct {
		Input string
		Lanes []lane
	}
}

type lane struct{ Partitions int }

func (i *instance) status() (s status) {
	i.t.Helper()
	if err := json.Unmarshal(i.get("/api/status", ""), &s); err != nil {
		i.t.Fatal(err)
	}
	return s
}

// topics is the deployment's entry in its file.
func (d *deployment) topics() string {
	d.t.Helper()
	_, entry, found := strings.Cut(d.text(), "\ntopics:\n")
	if !found {
		d.t.Fatal("the file has no topics")
	}
	return entry
}

func (d *deployment) text() string {
	d.t.Helper()
	text, err := os.ReadFile(d.config)
	if err != nil {
		d.t.Fatal(err)
	}
	return string(text)
}

// add puts another entry behind the deployment's own, in the place of the one before.
func (d *deployment) add(entry string) {
	d.t.Helper()
	const begin = "    # added\n"
	own, _, _ := strings.Cut(d.text(), begin)
	if err := os.WriteFile(d.config+".new", []byte(own+begin+entry), 0o600); err != nil {
		d.t.Fatal(err)
	}
	if err := os.Rename(d.config+".new", d.config); err != nil {
		d.t.Fatal(err)
	}
}

// reload has the process read a file with this entry.
func (i *instance) reload(d *deployment, entry string) {
	i.t.Helper()
	before := i.gauge("kdedup_config_last_reload_success_timestamp_seconds")
	d.add(entry)
	i.hangUp()
	testkit.Eventually(i.t, 5*time.Minute, "the reload", func() bool {
		return i.gauge("kdedup_config_last_reload_success_timestamp_seconds") > before
	})
}

// refuse has the process read a file that it must not apply, and then the one before.
func (i *instance) refuse(d *deployment, entry string) {
	i.t.Helper()
	good := d.text()
	d.add(entry)
	i.hangUp()
	testkit.Eventually(i.t, time.Minute, "the refusal", func() bool {
		return i.gauge("kdedup_config_last_reload_successful") == 0
	})
	_, entry, _ = strings.Cut(good, "    # added\n")
	i.reload(d, entry)
}

func (i *instance) hangUp() {
	i.t.Helper()
	if err := i.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		i.t.Fatal(err)
	}
}

func (i *instance) gauge(name string) (sum float64) {
	i.t.Helper()
	for _, metric := range i.scrape()[name].GetMetric() {
		sum += metric.GetGauge().GetValue()
	}
	return sum
}

// counterOf is a counter of one input.
func (i *instance) counterOf(name, input string) (sum float64) {
	i.t.Helper()
	for _, metric := range i.scrape()[name].GetMetric() {
		for _, label := range metric.GetLabel() {
			if label.GetName() == "topic" && label.GetValue() == input {
				sum += metric.GetCounter().GetValue()
			}
		}
	}
	return sum
}
