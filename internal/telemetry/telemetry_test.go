package telemetry_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/internal/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ages = prometheus.HistogramOpts{Name: "age_seconds", Help: "Age.",
	Buckets: []float64{1, 10, 100}}

func TestATallyCountsAsTheClientsHistogramDoes(t *testing.T) {
	ours, theirs := prometheus.NewRegistry(), prometheus.NewRegistry()
	h := telemetry.NewHistograms(ours, ages, "topic").With("orders")
	reference := prometheus.NewHistogramVec(ages, []string{"topic"})
	theirs.MustRegister(reference)

	random := rand.New(rand.NewPCG(1, 2))
	tally := h.Tally()
	for i := range 10_000 {
		value := []float64{0, 1, 10, 100, 1000, float64(random.IntN(200))}[random.IntN(6)]
		tally.Observe(value, 1)
		reference.WithLabelValues("orders").Observe(value)
		if i%1000 == 999 {
			h.Add(tally)
		}
	}
	want, err := testutil.CollectAndFormat(reference, expfmt.TypeTextPlain, "age_seconds")
	if err != nil {
		t.Fatal(err)
	}
	got, err := testutil.CollectAndFormat(ours, expfmt.TypeTextPlain, "age_seconds")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("-theirs +ours:\n%s", diff)
	}
}

func TestOneLabelValueIsOneSeries(t *testing.T) {
	reg := prometheus.NewRegistry()
	family := telemetry.NewHistograms(reg, ages, "topic")
	for range 2 {
		h := family.With("orders") // two lanes of one topic
		tally := h.Tally()
		tally.Observe(5, 3)
		h.Add(tally)
	}
	const want = `
# HELP age_seconds Age.
# TYPE age_seconds histogram
age_seconds_bucket{topic="orders",le="1"} 0
age_seconds_bucket{topic="orders",le="10"} 6
age_seconds_bucket{topic="orders",le="100"} 6
age_seconds_bucket{topic="orders",le="+Inf"} 6
age_seconds_sum{topic="orders"} 30
age_seconds_count{topic="orders"} 6
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// blocked is the sum of the family's series of a reason.
func blocked(t *testing.T, reg *prometheus.Registry, reason string) (seconds float64) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, metric := range families[0].GetMetric() {
		for _, label := range metric.GetLabel() {
			if label.GetName() == "reason" && label.GetValue() == reason {
				seconds += metric.GetCounter().GetValue()
			}
		}
	}
	return seconds
}

func TestAWaitIsCountedWhileItLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		wait := telemetry.Blocked(reg).With(0, "orders", telemetry.BlockedByStore)
		check := func(want float64) {
			t.Helper()
			if got := blocked(t, reg, "store"); got != want {
				t.Errorf("got %v s, want %v s", got, want)
			}
		}
		check(0)
		wait.Begin()
		time.Sleep(90 * time.Second) // of the bubble, here and below
		check(90)
		wait.Begin() // still the same wait
		time.Sleep(30 * time.Second)
		wait.End()
		time.Sleep(time.Hour)
		wait.End()
		check(120)
	})
}

func TestLanesAreAddedUpAndTheGraceIsLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		one := telemetry.Blocked(reg).With(time.Second, "orders", telemetry.BlockedByOutput)
		other := telemetry.Blocked(reg).With(time.Second, "orders", telemetry.BlockedByOutput)
		one.Begin()
		other.Begin()
		time.Sleep(500 * time.Millisecond) // of the bubble
		other.End()                        // took less than the grace
		time.Sleep(9500 * time.Millisecond)
		if got := blocked(t, reg, "output"); got != 9 {
			t.Errorf("got %v s, want 9 s", got)
		}
	})
}

// BenchmarkObserve compares the cost for a record: 5,000 values a batch, in time's order.
func BenchmarkObserve(b *testing.B) {
	const batch = 5000
	opts := prometheus.HistogramOpts{Name: "s", Help: "S.",
		Buckets: prometheus.ExponentialBuckets(0.005, 2, 18)}
	values := make([]float64, batch)
	for i := range values {
		values[i] = 0.2 + float64(i)*1e-5
	}
	b.Run("tally", func(b *testing.B) {
		h := telemetry.NewHistograms(prometheus.NewRegistry(), opts, "topic").With("orders")
		tally := h.Tally()
		for n := 0; b.Loop(); n++ {
			tally.Observe(values[n%batch], 1)
			if n%batch == 0 {
				h.Add(tally)
			}
		}
	})
	b.Run("client", func(b *testing.B) {
		h := prometheus.NewHistogramVec(opts, []string{"topic"}).WithLabelValues("orders")
		for n := 0; b.Loop(); n++ {
			h.Observe(values[n%batch])
		}
	})
}

// The lanes of a topic end while one of them waits, and others come in their place.
func TestWhatRetiredLanesCountedStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		family := telemetry.Blocked(reg)
		for range 3 {
			one, other := family.With(0, "orders", telemetry.BlockedByStore), family.With(0,
				"orders", telemetry.BlockedByStore)
			elsewhere := family.With(0, "payments", telemetry.BlockedByOutput)
			one.Begin()
			other.Begin()
			elsewhere.Begin()
			time.Sleep(5 * time.Second)
			one.End()
			family.Retire("orders")
			time.Sleep(time.Hour)
			elsewhere.End()
		}
		if got := blocked(t, reg, telemetry.BlockedByStore); got != 30 {
			t.Errorf("orders: got %v s, want 30 s", got)
		}
		if got := blocked(t, reg, telemetry.BlockedByOutput); got != 3*3605 {
			t.Errorf("payments: got %v s, want %v s", got, 3*3605)
		}
	})
}

func TestSeriesOfATopicCanBeTakenAway(t *testing.T) {
	reg := prometheus.NewRegistry()
	waits, histograms := telemetry.Blocked(reg), telemetry.NewHistograms(reg, ages, "topic")
	for _, topic := range []string{"orders", "payments"} {
		waits.With(0, topic, telemetry.BlockedByStore)
		histograms.With(topic)
	}
	waits.Forget("orders")
	histograms.Forget("orders")
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if got := f.GetMetric(); len(got) != 1 || !strings.Contains(got[0].String(), "payments") {
			t.Errorf("%s has the series %v", f.GetName(), got)
		}
	}
}

func TestTotalsAddUpTheSeriesOfAnInput(t *testing.T) {
	records := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "records"},
		[]string{"topic", "lane", "outcome"})
	for i, labels := range [][]string{{"orders", "0", "first"}, {"orders", "1", "first"},
		{"orders", "1", "copy"}, {"refunds", "0", "first"}} {
		records.WithLabelValues(labels...).Add(float64(int(1) << i))
	}
	orders := prometheus.Labels{"topic": "orders"}
	if diff := cmp.Diff(
		map[string]float64{"first": 3, "copy": 4}, telemetry.Totals(records, orders, "outcome"),
	); diff != "" {
		t.Error(diff)
	}
	if got := telemetry.Total(records); got != 15 {
		t.Errorf("the total is %v", got)
	}
	if got := telemetry.Totals(
		records, prometheus.Labels{"topic": "none"}, "outcome",
	); len(got) > 0 {
		t.Errorf("an input without series has %v", got)
	}
}
