package telemetry_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/kdedup/kdedup/internal/telemetry"
)

// world is a registry whose topics and clients come and go, with what they have counted.
type world struct {
	registry *prometheus.Registry
	counted  *prometheus.CounterVec
	took     *prometheus.HistogramVec
	client   *prometheus.CounterVec
	lag      *prometheus.GaugeVec
	groups   telemetry.Groups
}

func newWorld() *world {
	w := &world{registry: prometheus.NewRegistry(),
		counted: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "shared_total",
			Help: "h"}, []string{"topic", "reason"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "took_seconds",
			Help: "h", Buckets: []float64{1, 10}}, []string{"topic"}),
		client: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kdedup_kafka_client_bytes_total", Help: "h"}, []string{"client_id", "topic"}),
		lag: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "lag", Help: "h"},
			[]string{"topic", "partition"}),
		groups: telemetry.Groups{Topics: make(map[string]string),
			Clients: make(map[string]telemetry.Client)},
	}
	w.registry.MustRegister(w.counted, w.took, w.client, w.lag)
	return w
}

func (w *world) summed() *telemetry.Summed {
	return telemetry.NewSummed(w.registry, func() telemetry.Groups { return w.groups },
		func(family string) bool { return family == "shared_total" })
}

// add has a topic and its client share what they count.
func (w *world) add(topic string) {
	w.groups.Topics[topic] = "t-.*"
	w.groups.Clients[topic+"-dedup-0"] = telemetry.Client{Name: "t-.*-dedup",
		Topics: map[string]string{topic: "t-.*", topic + ".clean": "t-.*.clean"}}
}

func (w *world) forget(topic string) {
	its := prometheus.Labels{"topic": topic}
	w.counted.DeletePartialMatch(its)
	w.took.DeletePartialMatch(its)
	w.lag.DeletePartialMatch(its)
	w.client.DeletePartialMatch(prometheus.Labels{"client_id": topic + "-dedup-0"})
	delete(w.groups.Topics, topic)
	delete(w.groups.Clients, topic+"-dedup-0")
}

// Whatever topics come, go, come again and begin to count anew: a sum has what all of them have
// counted up to a scrape, and never falls.
func TestSumsOfManyTopicsNeverFall(t *testing.T) {
	r := rand.New(rand.NewPCG(43, 1))
	w := newWorld()
	summed := w.summed()
	w.add("t-kept") // so that the group is always there
	counted, bytes, took, slow := 0.0, 0.0, 0, 0
	for range 400 {
		topic := fmt.Sprintf("t-%d", r.IntN(6))
		switch r.IntN(8) {
		case 0:
			w.forget(topic)
		case 1:
			w.client.DeletePartialMatch(prometheus.Labels{"client_id": topic + "-dedup-0"})
		default:
			w.add(topic)
			n := float64(1 + r.IntN(20))
			w.counted.WithLabelValues(topic, "why").Add(n)
			w.client.WithLabelValues(topic+"-dedup-0", topic+".clean").Add(n)
			counted, bytes = counted+n, bytes+n
			seconds := float64(r.IntN(20))
			w.took.WithLabelValues(topic).Observe(seconds)
			if took++; seconds > 10 {
				slow++
			}
		}
		want := fmt.Sprintf(`# HELP kdedup_kafka_client_bytes_total h
# TYPE kdedup_kafka_client_bytes_total counter
kdedup_kafka_client_bytes_total{client_id="t-.*-dedup",topic="t-.*.clean"} %v
# HELP shared_total h
# TYPE shared_total counter
shared_total{reason="why",topic="t-.*"} %v
`, bytes, counted)
		if bytes == 0 {
			continue
		}
		if err := testutil.GatherAndCompare(summed, strings.NewReader(want), "shared_total",
			"kdedup_kafka_client_bytes_total"); err != nil {
			t.Fatal(err)
		}
		families, err := summed.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() != "took_seconds" {
				continue
			}
			h := f.GetMetric()[0].GetHistogram()
			if len(f.GetMetric()) != 1 || int(h.GetSampleCount()) != took ||
				int(h.GetBucket()[1].GetCumulativeCount()) != took-slow {
				t.Fatalf("%v, want %d durations, %d of more than 10 s", f.GetMetric(), took,
					slow)
			}
		}
	}
}

// A topic outside of all groups stays as it is, and so does one of a group in what is its own. One
// with many partitions has one series for all of them, also when it has fewer of them again.
func TestOnlyTopicsOfAGroupShareSeries(t *testing.T) {
	w := newWorld()
	w.add("t-few")
	w.add("t-many")
	for _, topic := range []string{"alone", "t-few"} {
		w.counted.WithLabelValues(topic, "why").Inc()
		w.lag.WithLabelValues(topic, "1").Set(7)
	}
	for partition := range 12 {
		w.lag.WithLabelValues("t-many", fmt.Sprint(partition)).Set(2)
	}
	summed := w.summed()
	compare := func(sum int) {
		t.Helper()
		want := fmt.Sprintf(`# HELP lag h
# TYPE lag gauge
lag{partition="",topic="t-many"} %d
lag{partition="1",topic="alone"} 7
lag{partition="1",topic="t-few"} 7
# HELP shared_total h
# TYPE shared_total counter
shared_total{reason="why",topic="alone"} 1
shared_total{reason="why",topic="t-.*"} 1
`, sum)
		if err := testutil.GatherAndCompare(summed, strings.NewReader(want), "lag",
			"shared_total"); err != nil {
			t.Fatal(err)
		}
	}
	compare(24)
	for _, partition := range []string{"3", "5", "7", "9", "11", "4", "6", "8", "10"} {
		w.lag.DeleteLabelValues("t-many", partition)
	}
	compare(6)
}

// What nobody needs any more goes: the sums of a group whose last topic is gone.
func TestSumsGoWithTheirGroup(t *testing.T) {
	w := newWorld()
	w.add("t-1")
	w.counted.WithLabelValues("t-1", "why").Inc()
	w.counted.WithLabelValues("alone", "why").Inc()
	summed := w.summed()
	names := func() (topics []string) {
		families, err := summed.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				topics = append(topics, telemetry.Label(m, "topic"))
			}
		}
		slices.Sort(topics)
		return topics
	}
	if got := names(); !slices.Equal(got, []string{"alone", "t-.*"}) {
		t.Error(got)
	}
	w.forget("t-1")
	w.groups.Topics["other"] = "other-.*"
	for range 2 {
		names()
	}
	if got := names(); !slices.Equal(got, []string{"alone"}) {
		t.Error(got)
	}
}
