// Package kafka makes the client options that every Kafka client of the process shares, and knows
// what the topics of a pipeline must look like, and which rights it needs on them.
package kafka

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/plugin/kslog"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/internal/certs"
)

// dialTimeout bounds the connection and its TLS handshake together.
const dialTimeout = 10 * time.Second

// Connector is how all clients of a process reach the brokers. They share its certificates and its
// token.
type Connector struct {
	brokers []string
	cluster string          // its name where there are two
	rack    string          // of who reads
	files   *certs.Follower // nil without TLS
	login   sasl.Mechanism  // nil without SASL
	sight   *sight
	gate    *gate
}

// The sections of the configuration that name brokers.
const (
	inputPlace  = "kafka"
	outputPlace = "kafka.output"
)

// NewConnector reads the certificates; it connects to nothing.
func NewConnector(ctx context.Context, k config.Kafka, log *slog.Logger) (*Connector, error) {
	c, err := newConnector(ctx, inputPlace, config.OutputCluster{Brokers: k.Brokers, TLS: k.TLS,
		SASL: k.SASL}, log)
	if err != nil {
		return nil, err
	}
	c.rack = k.Rack
	if k.Output.Apart() {
		c.cluster = config.ClusterInput
	}
	return c, nil
}

// NewOutputConnector is how clients reach the brokers that take what is forwarded. It is that of
// the input unless the configuration names another cluster.
func NewOutputConnector(
	ctx context.Context, k config.Kafka, input *Connector, log *slog.Logger,
) (*Connector, error) {
	if !k.Output.Apart() {
		return input, nil
	}
	c, err := newConnector(ctx, outputPlace, k.Output, log)
	if err != nil {
		return nil, err
	}
	c.cluster = config.ClusterOutput
	return c, nil
}

func newConnector(
	ctx context.Context, place string, k config.OutputCluster, log *slog.Logger,
) (c *Connector, err error) {
	c = &Connector{brokers: k.Brokers, sight: newSight(log), gate: newGate()}
	if k.TLS.Enabled {
		if c.files, err = certs.Client(place+".tls", filesOf(k.TLS), log); err != nil {
			return nil, err
		}
	}
	if c.login, err = mechanism(ctx, place+".sasl", k.SASL, log); err != nil {
		return nil, err
	}
	return c, nil
}

func filesOf(t config.TLS) certs.ClientFiles {
	return certs.ClientFiles{CAFile: t.CAFile, CertFile: t.CertFile, KeyFile: t.KeyFile,
		ServerName: t.ServerName}
}

// Options returns brokers, rack, TLS, SASL, logging and client metrics, for the clients of lanes.
// The client's own lines are demoted: what matters reaches the caller as an error.
func (c *Connector) Options(
	clientID string, reg prometheus.Registerer, log *slog.Logger,
) []kgo.Opt {
	return append(c.options(clientID), kgo.Rack(c.rack),
		kgo.WithLogger(kslog.New(demote(log))),
		kgo.WithHooks(clientMetrics(reg, c.cluster), c.sight))
}

// AdminOptions are those of a client that only asks and waits for the answer: all of its errors
// reach the caller, so its lines go down by two steps. It has no rack: a replica is behind its
// leader, and whoever waits for an answer waits for that too, as the readers of a claim log do.
func (c *Connector) AdminOptions(clientID string, log *slog.Logger) []kgo.Opt {
	return append(c.options(clientID),
		kgo.WithLogger(kslog.New(demote(slog.New(demoted{log.Handler()})))))
}

func (c *Connector) options(clientID string) []kgo.Opt {
	opts := []kgo.Opt{kgo.SeedBrokers(c.brokers...), kgo.ClientID(clientID),
		kgo.Dialer(c.gate.client(c.login == nil, c.dial))}
	if c.login != nil {
		opts = append(opts, kgo.SASL(c.login))
	}
	return opts
}

// dial takes the certificates as they are now.
func (c *Connector) dial(ctx context.Context, network, host string) (net.Conn, error) {
	plain := &net.Dialer{Timeout: dialTimeout}
	if c.files == nil {
		return plain.DialContext(ctx, network, host)
	}
	dialer := tls.Dialer{NetDialer: plain, Config: c.files.Current()}
	return dialer.DialContext(ctx, network, host)
}
