package kafka_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/internal/kafka"
	"github.com/kdedup/kdedup/internal/testkit"
)

func connect(t *testing.T, k config.Kafka) *kgo.Client {
	t.Helper()
	opts, err := kafka.Connection(k, "test", prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func TestSASL(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.EnableSASL(),
		kfake.Superuser("PLAIN", "ann", "secret"), kfake.Superuser("SCRAM-SHA-256", "ann", "secret"), kfake.Superuser("SCRAM-SHA-512", "ann", "secret"))
	for _, mechanism := range []string{"plain", "scram-sha-256", "scram-sha-512"} {
		t.Run(mechanism, func(t *testing.T) {
			k := config.Kafka{Brokers: brokers, SASL: config.SASL{Mechanism: mechanism, Username: "ann", Password: "secret"}}
			if err := connect(t, k).Ping(t.Context()); err != nil {
				t.Error(err)
			}
			k.SASL.Password = "wrong"
			if err := connect(t, k).Ping(t.Context()); err == nil {
				t.Error("a wrong password was accepted")
			}
		})
	}
}

// certificate writes a self-signed certificate for 127.0.0.1 and its key.
func certificate(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "broker"}, DNSNames: []string{"broker"},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, data []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "EC PRIVATE KEY", private)
}

func TestTLS(t *testing.T) {
	cert, key := certificate(t)
	conf, err := kafka.TLS(config.TLS{Enabled: true, CAFile: cert, CertFile: cert, KeyFile: key, ServerName: "broker"})
	if err != nil {
		t.Fatal(err)
	}
	server := conf.Clone()
	_, brokers := testkit.FakeKafka(t, kfake.TLS(server))
	k := config.Kafka{Brokers: brokers, TLS: config.TLS{Enabled: true, CAFile: cert, ServerName: "broker"}}
	if err := connect(t, k).Ping(t.Context()); err != nil {
		t.Error(err)
	}
	k.TLS.ServerName = "another"
	if err := connect(t, k).Ping(t.Context()); err == nil {
		t.Error("a certificate for another name was accepted")
	}
}

func TestBrokenCertificatesNameTheirSetting(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, conf := range map[string]config.TLS{
		"kafka.tls: ca_file: " + text + " holds no certificate in PEM form": {Enabled: true, CAFile: text},
		"kafka.tls: ca_file: open none":                                     {Enabled: true, CAFile: "none"},
		"kafka.tls: cert_file and key_file: ":                               {Enabled: true, CertFile: text, KeyFile: text},
	} {
		_, err := kafka.Connection(config.Kafka{TLS: conf}, "test", nil, slog.New(slog.DiscardHandler))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// Two clients of one process register their metrics side by side, and a client that joins again
// after a failure does too.
func TestClientMetricsOfSeveralClients(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	registry := prometheus.NewRegistry()
	for range 2 {
		var clients []*kgo.Client
		for _, id := range []string{"lane-0", "lane-1"} {
			opts, err := kafka.Connection(config.Kafka{Brokers: brokers}, id, registry, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			client, err := kgo.NewClient(opts...)
			if err != nil {
				t.Fatal(err)
			}
			if err := client.Ping(t.Context()); err != nil {
				t.Error(err)
			}
			clients = append(clients, client)
		}
		families, err := registry.Gather()
		if err != nil || len(families) == 0 {
			t.Errorf("%d families, %v", len(families), err)
		}
		for _, client := range clients {
			client.Close()
		}
	}
}
