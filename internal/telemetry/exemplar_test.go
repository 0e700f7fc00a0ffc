package telemetry_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/kdedup/kdedup/internal/telemetry"
)

// examples are the exemplars of the only series, by the upper bounds of their buckets.
func examples(t *testing.T, reg *prometheus.Registry) map[float64]*dto.Exemplar {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[float64]*dto.Exemplar)
	for _, b := range families[0].GetMetric()[0].GetHistogram().GetBucket() {
		if e := b.GetExemplar(); e != nil {
			found[b.GetUpperBound()] = e
		}
	}
	return found
}

func TestTheLatestExampleOfABucketStays(t *testing.T) {
	reg := prometheus.NewRegistry()
	h := telemetry.NewHistograms(reg, ages, "topic").With("orders")
	tally := h.Tally()
	add := func(value float64, of telemetry.Span) {
		tally.Observe(value, 1)
		if of != (telemetry.Span{}) {
			tally.Exemplify(value, of)
		}
		h.Add(tally)
	}
	one, two := telemetry.Span{ID: [8]byte{1}}, telemetry.Span{ID: [8]byte{2}}
	add(5, telemetry.Span{})
	if got := examples(t, reg); len(got) != 0 {
		t.Errorf("without a trace there are examples: %v", got)
	}
	add(5, one)
	add(50, one)
	add(7, two)
	add(8, telemetry.Span{})
	got := examples(t, reg)
	if len(got) != 2 || got[10].GetValue() != 7 || got[100].GetValue() != 50 {
		t.Fatalf("got %v", got)
	}
	labels := make(map[string]string)
	for _, l := range got[10].GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	if diff := cmp.Diff(map[string]string{"trace_id": strings.Repeat("0", 32),
		"span_id": "0200000000000000"}, labels); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnObservationIsAnExampleWhereThereIsASpan(t *testing.T) {
	reg := prometheus.NewRegistry()
	h := prometheus.NewHistogram(ages)
	reg.MustRegister(h)
	telemetry.ObserveIn(h, 5, telemetry.Span{})
	telemetry.ObserveIn(h, 50, telemetry.Span{ID: [8]byte{1}})
	if got := examples(t, reg); len(got) != 1 || got[100].GetValue() != 50 {
		t.Errorf("got %v", got)
	}
}
