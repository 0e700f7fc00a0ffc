package kafka

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/plugin/kprom"
)

const clientPrefix = "kdedup_kafka_client"

// clientMetrics are the series of one client: they come and go with it. Where there are two
// clusters they name theirs: each has a broker 1.
func clientMetrics(reg prometheus.Registerer, cluster string) *kprom.Metrics {
	labels := prometheus.Labels{}
	if cluster != "" {
		labels["cluster"] = cluster
	}
	return kprom.NewMetrics(clientPrefix,
		kprom.Registerer(wellNamed{reg}),
		kprom.WithStaticLabel(labels),
		kprom.WithClientLabel(),
		// Details replace the defaults: without Records and UncompressedBytes nothing is counted.
		kprom.FetchAndProduceDetail(kprom.ByNode, kprom.ByTopic, kprom.Records,
			kprom.UncompressedBytes, kprom.CompressedBytes, kprom.ConsistentNaming),
		kprom.Histograms(kprom.RequestDurationE2E, kprom.RequestThrottled),
		// A Prometheus that takes native histograms would drop the buckets that the boards ask for.
		kprom.NativeBucketFactor(1))
}

// wellNamed leaves out two gauges whose names end in _total, as only those of counters may. There
// are gauges of the same buffers in bytes.
type wellNamed struct{ prometheus.Registerer }

var illNamed = []string{"buffered_fetch_records_total", "buffered_produce_records_total"}

// Register implements prometheus.Registerer.
func (w wellNamed) Register(c prometheus.Collector) error {
	if isIllNamed(c) {
		return nil
	}
	return w.Registerer.Register(c)
}

// MustRegister implements prometheus.Registerer.
func (w wellNamed) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		if !isIllNamed(c) {
			w.Registerer.MustRegister(c)
		}
	}
}

func isIllNamed(c prometheus.Collector) bool {
	descs := make(chan *prometheus.Desc, 1)
	go func() {
		c.Describe(descs)
		close(descs)
	}()
	found := false
	for desc := range descs {
		for _, name := range illNamed {
			found = found || strings.Contains(desc.String(), `"`+clientPrefix+"_"+name+`"`)
		}
	}
	return found
}
