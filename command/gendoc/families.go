package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/dedup/cassandra"
	"github.com/kdedup/kdedup/dedup/claimlog"
	"github.com/kdedup/kdedup/dedup/claimmetrics"
	"github.com/kdedup/kdedup/dedup/embedded"
	"github.com/kdedup/kdedup/dedup/postgres"
	"github.com/kdedup/kdedup/dedup/redis"
	"github.com/kdedup/kdedup/internal/api"
	"github.com/kdedup/kdedup/internal/otlp/push"
	"github.com/kdedup/kdedup/internal/telemetry"
	"github.com/kdedup/kdedup/pipeline"
	"github.com/kdedup/kdedup/pipeline/tracing"
)

// family is what a registry knows about a metric.
type family struct {
	name, kind, help string
	labels           []string
}

// recorder is a registerer that notes what is registered, also what has no series yet.
type recorder struct {
	prometheus.Registerer
	families []family
}

// MustRegister implements prometheus.Registerer.
func (r *recorder) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		if err := r.Register(c); err != nil {
			panic(err) // two families with one name
		}
	}
}

// Register implements prometheus.Registerer.
func (r *recorder) Register(c prometheus.Collector) error {
	if err := r.Registerer.Register(c); err != nil {
		return err
	}
	descs := make(chan *prometheus.Desc, 100) // no collector has as many
	c.Describe(descs)
	close(descs)
	for desc := range descs {
		f, err := describe(desc)
		if err != nil {
			return err
		}
		f.kind = kindOf(c)
		if !slices.Contains(neverFilled, f.name) {
			r.families = append(r.families, f)
		}
	}
	return nil
}

var (
	descText = regexp.MustCompile(
		`^Desc\{fqName: ("(?:[^"\\]|\\.)*"), help: ("(?:[^"\\]|\\.)*"), unit: "[^"]*", constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)
	constName = regexp.MustCompile(`(\w+)="`)
)

// describe takes a description apart. The client shows its parts in no other way.
func describe(desc *prometheus.Desc) (f family, err error) {
	parts := descText.FindStringSubmatch(desc.String())
	if parts == nil {
		return f, fmt.Errorf("not understood: %s", desc)
	}
	if f.name, err = strconv.Unquote(parts[1]); err != nil {
		return f, err
	}
	if f.help, err = strconv.Unquote(parts[2]); err != nil {
		return f, err
	}
	for _, match := range constName.FindAllStringSubmatch(parts[3], -1) {
		f.labels = append(f.labels, match[1])
	}
	if parts[4] != "" {
		f.labels = append(f.labels, strings.Split(parts[4], ",")...)
	}
	slices.SortFunc(f.labels, topicFirst) // the client's plug-in has no order of its own
	return f, nil
}

func topicFirst(a, b string) int {
	switch {
	case a == b:
		return 0
	case a == "topic":
		return -1
	case b == "topic":
		return 1
	}
	return strings.Compare(a, b)
}

// kindOf is the type of a collector's metrics. Families of others tell it by their first series.
func kindOf(c prometheus.Collector) string {
	switch c := c.(type) {
	case *prometheus.CounterVec, *telemetry.Waits:
		return "counter"
	case *prometheus.GaugeVec:
		return "gauge"
	case *prometheus.HistogramVec, *telemetry.Histograms, prometheus.Histogram:
		return "histogram"
	case prometheus.Metric:
		return kindOfMetric(c)
	}
	return "gauge" // the readiness of lanes, which are asked one by one
}

func kindOfMetric(m prometheus.Metric) string {
	var text dto.Metric
	if err := m.Write(&text); err != nil || text.GetCounter() == nil {
		return "gauge"
	}
	return "counter"
}

// register lets every package register what it has.
func register() ([]family, error) {
	r := &recorder{Registerer: prometheus.NewRegistry()}
	telemetry.Build(r, "")
	telemetry.NewConfig(r)
	telemetry.Started(r)
	telemetry.Waiting(r)
	telemetry.NewClusters(r)
	telemetry.LogLines(r, func() uint64 { return 0 })
	consumer.NewCollectors(r)
	claimmetrics.NewCollectors(r)
	pipeline.NewCollectors(r).PerPartition(r)
	tracing.NewMetrics(r)
	push.NewMetrics(r)
	api.NewMetrics(r)
	cassandra.RegisterMetrics(r)
	redis.RegisterMetrics(r)
	postgres.RegisterMetrics(r)
	claimlog.RegisterMetrics(r)
	if err := registerEmbedded(r); err != nil {
		return nil, err
	}
	err := registerClient(r)
	return r.families, err
}

func registerEmbedded(r *recorder) error {
	directory, err := os.MkdirTemp("", "kdedup-gendoc-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	store, err := embedded.Open(embedded.Options{Path: directory,
		Logger: slog.New(slog.DiscardHandler), Registerer: r})
	if err != nil {
		return err
	}
	return store.Close()
}

// registerClient makes a client that connects to nobody. It takes its families away at its end.
func registerClient(r *recorder) error {
	connector, err := kafka.NewConnector(context.Background(),
		config.Kafka{Brokers: []string{"127.0.0.1:1"}}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	client, err := kgo.NewClient(connector.Options("doc", r, slog.New(slog.DiscardHandler))...)
	if err != nil {
		return err
	}
	client.Close()
	return nil
}
