package process

import (
	"context"
	"log/slog"
	"time"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/internal/otlp"
	"github.com/kdedup/kdedup/internal/otlp/push"
	"github.com/kdedup/kdedup/process/build"
)

// collector is where a section of the configuration sends telemetry.
func collector(
	section string, to otlp.Collector, headers []config.OTLPHeader, t config.TLS, log *slog.Logger,
) (otlp.Collector, error) {
	to.Headers = make(map[string]string)
	for _, h := range headers {
		to.Headers[h.Name] = h.Value.Reveal()
	}
	encrypted, err := connect.Encryption(section+".tls", t, log)
	if err != nil {
		return otlp.Collector{}, err
	}
	if encrypted != nil {
		// the exporter keeps it: renewed certificates are read at the next start
		to.TLS = encrypted()
	}
	return to, nil
}

// newPusher returns nil if no collector gets the metrics.
func (p *Process) newPusher(c config.Config) (*push.Pusher, error) {
	o := c.Metrics.OTLP
	if !o.Enabled {
		return nil, nil
	}
	to, err := collector("metrics.otlp", otlp.Collector{Endpoint: o.Endpoint, Protocol: o.Protocol,
		Timeout: o.Timeout}, o.Headers, o.TLS, p.log)
	if err != nil {
		return nil, err
	}
	return push.New(context.Background(), push.Options{
		Collector: to, Interval: o.Interval, Instance: c.Instance, Version: build.Version(),
		Gatherer: p.summed, Metrics: p.families.push, Logger: p.log,
	})
}

// leastLastPush is how long the last export may take where the lanes have used up the time.
const leastLastPush = time.Second

// push sends the metrics until the server stops serving them. The last export has what the lanes
// leave of shutdown_timeout, which begins when ctx ends.
func (p *Process) push(ctx, serving context.Context) {
	if p.pusher == nil {
		return
	}
	c := p.active.Load().file
	p.pusher.Start()
	<-ctx.Done()
	until := time.Now().Add(c.ShutdownTimeout)
	<-serving.Done()
	last, cancel := context.WithTimeout(context.Background(),
		min(c.Metrics.OTLP.Timeout, max(leastLastPush, time.Until(until))))
	defer cancel()
	p.pusher.Stop(last)
}
