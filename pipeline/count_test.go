package pipeline

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/telemetry"
)

// countBatch counts one committed batch and returns its series by name and labels: counters and
// gauges by value, histograms by count and sum.
func countBatch(t *testing.T, fill func(*counts, *Metrics)) map[string]string {
	t.Helper()
	reg := prometheus.NewRegistry()
	m := NewCollectors(reg).PerPartition(reg).For("orders", 0).within(10*time.Hour, false)
	p := &plan{}
	fill(&p.counts, m)
	m.count(p, &consumer.Batch{}, noTrace{})
	return series(t, reg)
}

func series(t *testing.T, reg *prometheus.Registry) map[string]string {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	for _, f := range families {
		for _, metric := range f.GetMetric() {
			name := f.GetName()
			for _, label := range metric.GetLabel() {
				name += " " + label.GetValue()
			}
			found[name] = value(metric)
		}
	}
	return found
}

func value(m *dto.Metric) string {
	if h := m.GetHistogram(); h != nil {
		return fmt.Sprintf("%d, %.0f s", h.GetSampleCount(), h.GetSampleSum())
	}
	return fmt.Sprint(m.GetCounter().GetValue() + m.GetGauge().GetValue())
}

func only(all map[string]string, names ...string) map[string]string {
	some := make(map[string]string)
	for _, name := range names {
		some[name] = all[name]
	}
	return some
}

func TestCopiesAreCountedByAgeAndPartition(t *testing.T) {
	now := time.Now()
	got := countBatch(t, func(c *counts, m *Metrics) {
		for _, copied := range []struct {
			partition int32
			verdict   dedup.Verdict
			claimed   time.Time
		}{
			{0, dedup.VerdictDuplicate, now.Add(-time.Hour)},
			{0, dedup.VerdictDuplicate, now.Add(-9 * time.Hour)}, // of ten
			{3, dedup.VerdictConflict, now.Add(-time.Minute)},
			{3, dedup.VerdictDuplicate, now.Add(time.Minute)}, // the claimant's clock is ahead
		} {
			r := consumer.Record{Record: &kgo.Record{Partition: copied.partition, Timestamp: now}}
			c.add(m, r, &dedup.Judgement{Verdict: copied.verdict, ClaimedAt: copied.claimed},
				Duplicate)
		}
	})
	want := map[string]string{
		"kdedup_duplicate_age_seconds orders duplicate": "3, 36000 s",
		"kdedup_duplicate_age_seconds orders conflict":  "1, 60 s",
		"kdedup_duplicates_near_ttl_total orders":       "1",
		"kdedup_partition_duplicates_total 0 orders":    "2",
		"kdedup_partition_duplicates_total 3 orders":    "2",
		"kdedup_ttl_seconds orders":                     "36000",
		"kdedup_end_to_end_seconds orders":              "0, 0 s",
	}
	names := make([]string, 0, len(want))
	for name := range want {
		names = append(names, name)
	}
	if diff := cmp.Diff(want, only(got, names...)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestForwardsByOldClaimsAreCounted(t *testing.T) {
	now := time.Now()
	got := countBatch(t, func(c *counts, m *Metrics) {
		for verdict, ages := range map[dedup.Verdict][]time.Duration{
			// the ttl is ten hours
			dedup.VerdictMine: {time.Minute, 4 * time.Hour, 6 * time.Hour, 9 * time.Hour,
				-time.Minute},
			dedup.VerdictFirst:     {0},
			dedup.VerdictDuplicate: {6 * time.Hour},
			dedup.VerdictReplay:    {6 * time.Hour},
		} {
			for _, age := range ages {
				c.add(m, consumer.Record{Record: &kgo.Record{}},
					&dedup.Judgement{Verdict: verdict, ClaimedAt: now.Add(-age)}, Forwarded)
			}
		}
	})
	if got := got["kdedup_forwards_late_total orders"]; got != "2" {
		t.Errorf("got %q, want 2", got)
	}
}

func TestOnlyRecordsForTheCleanTopicHaveAnEndToEndTime(t *testing.T) {
	made := time.Now().Add(-time.Minute)
	got := countBatch(t, func(c *counts, m *Metrics) {
		for o := range Outcomes() {
			r := consumer.Record{Record: &kgo.Record{Timestamp: made}}
			c.add(m, r, &dedup.Judgement{Verdict: dedup.VerdictFirst}, Outcome(o))
		}
		none := consumer.Record{Record: &kgo.Record{Timestamp: time.UnixMilli(-1)}}
		c.add(m, none, &dedup.Judgement{Verdict: dedup.VerdictFirst}, Forwarded)
	})
	// Forwarded and PassedThrough; a record without a timestamp is left out.
	if diff := cmp.Diff("2, 120 s", got["kdedup_end_to_end_seconds orders"]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// exampled is the trace of a batch of which some records have spans, too.
type exampled struct {
	noTrace
	batch   telemetry.Span
	records []RecordSpan
}

func (e exampled) Span() telemetry.Span { return e.batch }
func (e exampled) Spans() []RecordSpan  { return e.records }

func TestTheExampleOfALatencyIsARecordOrElseTheBatch(t *testing.T) {
	now := time.Now()
	span := func(n byte) telemetry.Span { return telemetry.Span{ID: [8]byte{n}} }
	reg := prometheus.NewRegistry()
	m := NewCollectors(reg).For("orders", 0).within(time.Hour, false)
	b, p := &consumer.Batch{}, &plan{}
	for i, ago := range []time.Duration{time.Hour, 2 * time.Minute, 2 * time.Minute, 12 * time.Hour,
		0} {
		outcome, timestamp := Forwarded, now.Add(-ago)
		switch i {
		case 3:
			outcome = Duplicate
		case 4:
			timestamp = time.UnixMilli(-1)
		}
		r := consumer.Record{Record: &kgo.Record{Timestamp: timestamp}}
		b.Records, p.became = append(b.Records, r), append(p.became, outcome)
		p.add(m, r, &dedup.Judgement{Verdict: dedup.VerdictFirst}, outcome)
	}
	m.count(p, b, exampled{batch: span(9), records: []RecordSpan{{1, span(1)}, {3, span(3)},
		{4, span(4)}}})
	got := make(map[float64]string)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "kdedup_end_to_end_seconds" {
			continue
		}
		for _, bucket := range f.GetMetric()[0].GetHistogram().GetBucket() {
			for _, label := range bucket.GetExemplar().GetLabel() {
				if label.GetName() == "span_id" {
					got[bucket.GetUpperBound()] = label.GetValue()
				}
			}
		}
	}
	want := map[float64]string{300: "0100000000000000", 14400: "0900000000000000"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestFailuresHaveAReasonOfAFewKnownOnes(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.New("anything"), "other"},
		{fmt.Errorf("end transaction: %w", kerr.InvalidProducerEpoch), "fenced"},
		{kerr.GroupAuthorizationFailed, "unauthorized"},
		{fmt.Errorf("poll: %w", kerr.UnknownTopicOrPartition), "topic"},
		{fmt.Errorf("%w: %w", consumer.ErrInputReplaced, kerr.UnknownTopicID), "stopped"},
		{kerr.MessageTooLarge, "too_large"},
		{kerr.CoordinatorNotAvailable, "coordinator"},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, "connection"},
	} {
		reg := prometheus.NewRegistry()
		NewCollectors(reg).For("orders", 0).laneFailed(c.err)
		for name, n := range series(t, reg) {
			if want := "kdedup_lane_failures_total " + c.want +
				" orders"; (n == "1") != (name == want) && n == "1" {
				t.Errorf("%v counts as %s, want %s", c.err, name, want)
			}
		}
		if got := series(t, reg)["kdedup_lane_failures_total "+c.want+" orders"]; got != "1" {
			t.Errorf("%v does not count as %s", c.err, c.want)
		}
	}
}

func TestALaneIsReadyAsItSays(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := NewCollectors(reg).For("orders", 0)
	var why error
	m.ready(func() error { return why })
	if got := series(t, reg)["kdedup_lane_ready 0 orders"]; got != "1" {
		t.Errorf("ready: got %s", got)
	}
	why = errors.New("has not joined")
	if got := series(t, reg)["kdedup_lane_ready 0 orders"]; got != "0" {
		t.Errorf("not ready: got %s", got)
	}
}

// BenchmarkCounting is what the metrics cost for each record, from the verdict to the commit.
func BenchmarkCounting(b *testing.B) {
	const batch = 5000
	now := time.Now()
	records := make([]consumer.Record, batch)
	judgements := make([]dedup.Judgement, batch)
	for i := range records {
		records[i] = consumer.Record{Record: &kgo.Record{Partition: int32(i / 1000),
			Timestamp: now.Add(time.Duration(i) * 50 * time.Microsecond)}}
		judgements[i] = dedup.Judgement{Verdict: dedup.VerdictFirst}
		if i%10 == 0 {
			judgements[i] = dedup.Judgement{Verdict: dedup.VerdictDuplicate,
				ClaimedAt: now.Add(-time.Duration(i) * time.Second)}
		}
	}
	reg := prometheus.NewRegistry()
	m := NewCollectors(reg).PerPartition(reg).For("orders", 0).within(time.Hour, false)
	b.ReportAllocs()
	for b.Loop() {
		p := &plan{}
		for i, r := range records {
			outcome := Forwarded
			if judgements[i].Verdict == dedup.VerdictDuplicate {
				outcome = Duplicate
			}
			p.add(m, r, &judgements[i], outcome)
		}
		m.count(p, &consumer.Batch{}, noTrace{})
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch, "ns/record")
}
