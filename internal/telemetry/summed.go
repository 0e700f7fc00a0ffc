package telemetry

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
)

// Groups tells whose series are added up, and under which name.
type Groups struct {
	Topics  map[string]string // by input
	Clients map[string]Client // by client ID
}

// Client is a client of Kafka whose series are added up.
type Client struct {
	Name   string            // of the sum's client_id
	Topics map[string]string // what stands in the place of its topics; Name for all others
}

// Summed is a gatherer that adds up the series of many topics. It changes nothing in the series
// that it gathers: whoever reads them by other ways finds each topic.
//
// A sum of counters must not fall when a topic or a client goes away: Prometheus would take that
// for a restart. So the growth of each series is added up, and not its value.
type Summed struct {
	from   prometheus.Gatherer
	groups func() Groups
	counts func(family string) bool // whether a family of counters is added up, too

	mu   sync.Mutex
	sums map[string]*sum // by family and labels
	wide map[wide]bool
}

// wide is a topic with more partitions or lanes than have series of their own.
type wide struct{ topic, label string }

// own is how many partitions, or lanes, have series of their own where topics are added up. Those
// of a topic that has more are one series.
var own = map[string]int{"partition": 4, "lane": 2}

// clientFamilies is how the names of a Kafka client's families begin.
const clientFamilies = "kdedup_kafka_client_"

// NewSummed adds up the histograms of topics, all of their clients' series, and the families of
// counters that are chosen. Groups is asked each time; a topic without one stays as it is.
func NewSummed(
	from prometheus.Gatherer, groups func() Groups, counts func(family string) bool,
) *Summed {
	return &Summed{from: from, groups: groups, counts: counts, sums: make(map[string]*sum),
		wide: make(map[wide]bool)}
}

// sum is one series of many.
type sum struct {
	group  string // see Groups; empty for the partitions of one topic
	labels []*dto.LabelPair
	like   *dto.Metric          // its buckets' bounds, and the newest exemplars
	total  []float64            // see numbers
	last   map[string][]float64 // of each series, by its labels
	seen   map[string]bool      // of last, in this round
}

// Gather implements prometheus.Gatherer.
func (s *Summed) Gather() ([]*dto.MetricFamily, error) {
	families, err := s.from.Gather()
	groups := s.groups()
	if len(groups.Topics) == 0 {
		return families, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.widenLocked(families, groups)
	for _, family := range families {
		s.addLocked(family, groups)
	}
	s.forgetLocked(groups)
	return families, err
}

// forgetLocked forgets topics and clients that are gone. Their sum stays while its group does.
func (s *Summed) forgetLocked(groups Groups) {
	names := make(map[string]bool)
	for _, name := range groups.Topics {
		names[name] = true
	}
	for _, client := range groups.Clients {
		names[client.Name] = true
	}
	for key, sum := range s.sums {
		maps.DeleteFunc(sum.last, func(series string, _ []float64) bool {
			return !sum.seen[series]
		})
		clear(sum.seen)
		if len(sum.last) == 0 && !names[sum.group] {
			delete(s.sums, key)
		}
	}
	maps.DeleteFunc(s.wide, func(w wide, _ bool) bool { return groups.Topics[w.topic] == "" })
}

// widenLocked finds the topics that are wide. They stay so: the members of a group give partitions
// back and forth.
func (s *Summed) widenLocked(families []*dto.MetricFamily, groups Groups) {
	for _, family := range families {
		for _, m := range family.GetMetric() {
			topic := Label(m, "topic")
			if groups.Topics[topic] == "" {
				continue
			}
			for label, few := range own {
				if n, err := strconv.Atoi(Label(m, label)); err == nil && n >= few {
					s.wide[wide{topic, label}] = true
				}
			}
		}
	}
}

// addLocked puts sums in the place of the series that belong to them.
func (s *Summed) addLocked(family *dto.MetricFamily, groups Groups) {
	var kept, joined []*dto.Metric
	sums := make(map[string]*sum)
	gauges := make(map[string]*dto.Metric)
	for _, m := range family.GetMetric() {
		labels, group := s.labels(family, m, groups)
		if labels == nil {
			kept = append(kept, m)
			continue
		}
		key := family.GetName() + keyOf(labels)
		if family.GetType() == dto.MetricType_GAUGE {
			first := gauges[key] == nil
			if first {
				gauges[key] = &dto.Metric{Label: labels, Gauge: &dto.Gauge{}}
				joined = append(joined, gauges[key])
			}
			join(family.GetName(), gauges[key].Gauge, m.GetGauge().GetValue(), first)
			continue
		}
		if s.sums[key] == nil {
			s.sums[key] = &sum{group: group, labels: labels,
				last: make(map[string][]float64), seen: make(map[string]bool)}
		}
		sums[key] = s.sums[key]
		sums[key].add(m)
	}
	// sums whose last topic is gone stay, so that nothing falls
	for key, sum := range s.sums {
		if strings.HasPrefix(key, family.GetName()+"{") {
			sums[key] = sum
		}
	}
	for _, sum := range sums {
		joined = append(joined, sum.metric())
	}
	if len(joined) == 0 {
		return
	}
	family.Metric = append(kept, joined...)
	slices.SortFunc(family.Metric, func(a, b *dto.Metric) int {
		return strings.Compare(keyOf(a.GetLabel()), keyOf(b.GetLabel()))
	})
}

// labels are those of the sum to which a series belongs; nil if it stays as it is.
func (s *Summed) labels(
	family *dto.MetricFamily, m *dto.Metric, groups Groups,
) (labels []*dto.LabelPair, group string) {
	if strings.HasPrefix(family.GetName(), clientFamilies) {
		client, found := groups.Clients[Label(m, "client_id")]
		if !found {
			return nil, ""
		}
		return replaced(m, map[string]string{"client_id": client.Name,
			"topic": cmp.Or(client.Topics[Label(m, "topic")], client.Name)}), client.Name
	}
	topic := Label(m, "topic")
	switch group = groups.Topics[topic]; {
	case group == "":
		return nil, ""
	case family.GetType() == dto.MetricType_HISTOGRAM || s.counts(family.GetName()):
		return replaced(m, map[string]string{"topic": group}), group
	}
	for label := range own {
		if Label(m, label) != "" && s.wide[wide{topic, label}] {
			return replaced(m, map[string]string{label: ""}), ""
		}
	}
	return nil, ""
}

func replaced(m *dto.Metric, values map[string]string) []*dto.LabelPair {
	labels := make([]*dto.LabelPair, len(m.GetLabel()))
	for i, l := range m.GetLabel() {
		value, found := values[l.GetName()]
		if !found {
			value = l.GetValue()
		}
		labels[i] = &dto.LabelPair{Name: l.Name, Value: proto.String(value)}
	}
	return labels
}

func keyOf(labels []*dto.LabelPair) string {
	var b strings.Builder
	b.WriteByte('{')
	for _, l := range labels {
		b.WriteString(l.GetName() + "=" + strconv.Quote(l.GetValue()) + ",")
	}
	return b.String()
}

// join adds a gauge to others. Of times the longest counts; of what is right for one lane, and of
// limits, the least.
func join(family string, to *dto.Gauge, value float64, first bool) {
	switch {
	case first:
	case strings.HasSuffix(family, "_seconds"):
		value = max(to.GetValue(), value)
	case slices.Contains(leastCounts, family):
		value = min(to.GetValue(), value)
	default:
		value += to.GetValue()
	}
	to.Value = proto.Float64(value)
}

var leastCounts = []string{"kdedup_lane_up", "kdedup_lane_ready", "kdedup_batch_limit_bytes"}

// add takes what a series has grown by since the last round.
func (s *sum) add(m *dto.Metric) {
	key, now := keyOf(m.GetLabel()), numbers(m)
	before := s.last[key]
	if len(before) != len(now) || now[0] < before[0] {
		before = make([]float64, len(now)) // it is new, or has begun again
	}
	if s.total == nil {
		s.total = make([]float64, len(now))
	}
	for i := range now {
		s.total[i] += now[i] - before[i]
	}
	s.last[key], s.seen[key] = now, true
	if s.like == nil {
		s.like = proto.Clone(m).(*dto.Metric)
	}
	for i, b := range m.GetHistogram().GetBucket() {
		if b.Exemplar != nil {
			s.like.Histogram.Bucket[i].Exemplar = b.Exemplar
		}
	}
}

// numbers are a counter's value; or a histogram's count, sum, and counts of its buckets.
func numbers(m *dto.Metric) []float64 {
	h := m.GetHistogram()
	if h == nil {
		return []float64{m.GetCounter().GetValue()}
	}
	all := []float64{float64(h.GetSampleCount()), h.GetSampleSum()}
	for _, b := range h.GetBucket() {
		all = append(all, float64(b.GetCumulativeCount()))
	}
	return all
}

func (s *sum) metric() *dto.Metric {
	m := proto.Clone(s.like).(*dto.Metric)
	m.Label = s.labels
	if m.Histogram == nil {
		m.Counter.Value = proto.Float64(s.total[0])
		return m
	}
	m.Histogram.SampleCount = proto.Uint64(uint64(s.total[0]))
	m.Histogram.SampleSum = proto.Float64(s.total[1])
	for i, b := range m.Histogram.Bucket {
		b.CumulativeCount = proto.Uint64(uint64(s.total[i+2]))
	}
	return m
}

// Own is how many series a topic has that shares others: n, or one.
func Own(label string, n int) int {
	if n > own[label] {
		return 1
	}
	return n
}
