package chaos_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// counters are what one process says about its work since it started.
type counters struct {
	outcomes map[string]int // kdedup_records_total
	verdicts map[string]int // kdedup_verdicts_total
	failures int            // kdedup_lane_failures_total
	aborted  int            // kdedup_batches_total of results other than committed
	blocked  int            // kdedup_blocked_seconds_total, for the store
	storeUp  bool           // kdedup_store_up
}

func (w *worker) counters() counters {
	w.t.Helper()
	answer, err := httpClient.Get("http://" + w.options.Addr + "/metrics")
	if err != nil {
		w.t.Fatal(err)
	}
	defer answer.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	batches := byLabel(families["kdedup_batches_total"], "result")
	return counters{
		outcomes: byLabel(families["kdedup_records_total"], "outcome"),
		verdicts: byLabel(families["kdedup_verdicts_total"], "verdict"),
		failures: sum(byLabel(families["kdedup_lane_failures_total"], "topic")),
		aborted:  sum(batches) - batches["committed"],
		blocked:  byLabel(families["kdedup_blocked_seconds_total"], "reason")["store"],
		storeUp:  families["kdedup_store_up"].GetMetric()[0].GetGauge().GetValue() == 1,
	}
}

func byLabel(family *dto.MetricFamily, name string) map[string]int {
	counts := make(map[string]int)
	for _, metric := range family.GetMetric() {
		for _, label := range metric.GetLabel() {
			if label.GetName() == name {
				counts[label.GetValue()] += int(metric.GetCounter().GetValue())
			}
		}
	}
	return counts
}

func sum(counts map[string]int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}

// checkConsistent compares the outcomes that a process counts with the verdicts they follow from.
func (c counters) checkConsistent(t *testing.T, name string) {
	t.Helper()
	want := map[string]int{
		"forwarded": c.verdicts["first"] + c.verdicts["mine"],
		"duplicate": c.verdicts["duplicate"],
		"replay":    c.verdicts["replay"],
		"conflict":  0, "passed_through": 0, "dropped": 0, "dead_lettered": 0,
	}
	if diff := cmp.Diff(want, c.outcomes); diff != "" {
		t.Errorf("%s: outcomes do not follow from the verdicts %v: -want +got:\n%s", name,
			c.verdicts, diff)
	}
}

func (c counters) String() string {
	return fmt.Sprintf("outcomes %v, verdicts %v, %d batches given back or failed, %d lane "+
		"failures, %d s blocked by the store",
		c.outcomes, c.verdicts, c.aborted, c.failures, c.blocked)
}

// checkCounters looks at the processes that live at the end. A batch whose commit was not answered
// is counted by nobody, so the sum may fall short of the records; with exactly_once it never
// exceeds them.
func (s *storm) checkCounters(records int) {
	s.t.Helper()
	total := 0
	for i, w := range s.workers[:usualProcesses] {
		if s.keeps[i] == keepOnly {
			s.t.Logf("%s, killed in this run: %v, %d starts, %d refused starts: it has no lanes",
				w.name, s.killed[i].Load(), w.starts, w.refused)
			continue
		}
		c := w.counters()
		c.checkConsistent(s.t, w.name)
		total += sum(c.outcomes)
		s.t.Logf("%s, killed in this run: %v, %d starts, %d refused starts: %v",
			w.name, s.killed[i].Load(), w.starts, w.refused, c)
	}
	if s.delivery == exactlyOnce && total > records {
		s.t.Errorf("the processes count %d records, and there are only %d", total, records)
	}
}

// checkCalm produces some more when all is healed. Now every record must be counted exactly once.
func (s *storm) checkCalm(n int) {
	s.t.Helper()
	before, failuresBefore := s.totals()
	s.traffic.produce(s.t.Context(), n)
	s.traffic.flush(s.t)
	s.waitDone()
	var counted int
	s.eventually("the count of the last batch", func() error {
		after, failures := s.totals()
		if counted = after - before; counted < n && failures == failuresBefore {
			return fmt.Errorf("%d of %d records are counted", counted, n)
		}
		return nil
	})
	if counted > n {
		s.t.Errorf("after the faults %d records were produced and %d counted", n, counted)
	}
}

func (s *storm) totals() (records, failures int) {
	s.t.Helper()
	for _, w := range s.withLanes() {
		c := w.counters()
		records += sum(c.outcomes)
		failures += c.failures
	}
	return records, failures
}
