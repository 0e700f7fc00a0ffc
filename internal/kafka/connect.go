// Package kafka makes the client options that every Kafka client of the process shares, and knows
// what the topics of a pipeline must look like.
package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
	"github.com/twmb/franz-go/plugin/kslog"

	"github.com/kdedup/kdedup/config"
)

// Connection returns brokers, TLS, SASL, logging and client metrics. The client's own lines are
// demoted: what matters reaches the caller as an error.
func Connection(k config.Kafka, clientID string, reg prometheus.Registerer, log *slog.Logger) ([]kgo.Opt, error) {
	opts := []kgo.Opt{
		kgo.SeedBrokers(k.Brokers...),
		kgo.ClientID(clientID),
		kgo.WithLogger(kslog.New(demote(log))),
	}
	if reg != nil {
		opts = append(opts, kgo.WithHooks(clientMetrics(reg)))
	}
	if k.TLS.Enabled {
		conf, err := TLS(k.TLS)
		if err != nil {
			return nil, fmt.Errorf("kafka.tls: %w", err)
		}
		opts = append(opts, kgo.DialTLSConfig(conf))
	}
	if mechanism := mechanism(k.SASL); mechanism != nil {
		opts = append(opts, kgo.SASL(mechanism))
	}
	return opts, nil
}

// TLS loads the certificates that the configuration names.
func TLS(t config.TLS) (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("ca_file: %w", err)
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca_file: %s holds no certificate in PEM form", t.CAFile)
		}
	}
	if t.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("cert_file and key_file: %w", err)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return conf, nil
}

func mechanism(s config.SASL) sasl.Mechanism {
	switch s.Mechanism {
	case "plain":
		return plain.Auth{User: s.Username, Pass: s.Password.Reveal()}.AsMechanism()
	case "scram-sha-256":
		return scram.Auth{User: s.Username, Pass: s.Password.Reveal()}.AsSha256Mechanism()
	case "scram-sha-512":
		return scram.Auth{User: s.Username, Pass: s.Password.Reveal()}.AsSha512Mechanism()
	}
	return nil
}
