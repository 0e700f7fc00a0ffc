package process

import (
	"context"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/internal/api"
	"github.com/kdedup/kdedup/internal/otlp"
	"github.com/kdedup/kdedup/pipeline"
	"github.com/kdedup/kdedup/pipeline/tracing"
	"github.com/kdedup/kdedup/process/build"
)

// openTracing returns nil if no traces are wanted. It connects to nobody yet, and fails only for
// settings that make no sense.
func openTracing(
	c config.Config, m *tracing.Metrics, log *slog.Logger,
) (*tracing.Provider, error) {
	t := c.Tracing
	if !t.Enabled {
		return nil, nil
	}
	to, err := collector("tracing", otlp.Collector{Endpoint: t.Endpoint, Protocol: t.Protocol,
		Timeout: t.Timeout}, t.Headers, t.TLS, log)
	if err != nil {
		return nil, err
	}
	return tracing.Open(context.Background(), tracing.Options{
		Collector: to, SampleRatio: t.SampleRatio,
		Instance: c.Instance, Version: build.Version(), Metrics: m, Logger: log,
	})
}

// tracer makes the spans of a topic.
func (p *Process) tracer(e connect.Entry) pipeline.Tracer {
	if p.tracing == nil {
		return nil
	}
	topic := tracing.Topic{Input: e.Input, ConsumerGroup: e.ConsumerGroup}
	if p.Config().Tracing.IncludeIDs {
		topic.ID = func(r *kgo.Record) string {
			id, _ := e.Extractor.Extract(r)
			return string(id)
		}
	}
	return p.tracing.Tracer(topic)
}

// apiTracer makes the spans of calls to the API; nil stands for none.
func apiTracer(provider *tracing.Provider) api.Tracer {
	if provider == nil {
		return nil
	}
	return provider.Calls()
}

// closeTracing exports the last spans. It comes after all that matters more.
func closeTracing(provider *tracing.Provider, c config.Config, log *slog.Logger) {
	if provider == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(),
		min(c.ShutdownTimeout, c.Tracing.Timeout))
	defer cancel()
	if err := provider.Close(ctx); err != nil {
		log.Warn("tracing stopped", "error", err)
	}
}
