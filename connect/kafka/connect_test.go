package kafka_test

import (
	"crypto/tls"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/internal/testkit"
)

func connect(t *testing.T, k config.Kafka) *kgo.Client {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	connector, err := kafka.NewConnector(t.Context(), k, log)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kgo.NewClient(connector.Options("test", prometheus.NewRegistry(), log)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func TestSASL(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.EnableSASL(),
		kfake.Superuser("PLAIN", "ann", "secret"), kfake.Superuser("SCRAM-SHA-256", "ann",
			"secret"), kfake.Superuser("SCRAM-SHA-512", "ann", "secret"))
	for _, mechanism := range []string{"plain", "scram-sha-256", "scram-sha-512"} {
		t.Run(mechanism, func(t *testing.T) {
			k := config.Kafka{Brokers: brokers,
				SASL: config.SASL{Mechanism: mechanism, Username: "ann", Password: "secret"}}
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

func TestTLS(t *testing.T) {
	ours, foreign := testkit.NewAuthority(t), testkit.NewAuthority(t)
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	save := func(authority *testkit.Authority) {
		if err := os.WriteFile(ca, authority.PEM(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	save(ours)
	cert, key := ours.Write(dir, testkit.Leaf{})
	pair, err := tls.X509KeyPair(ours.Issue(testkit.Leaf{}))
	if err != nil {
		t.Fatal(err)
	}
	_, brokers := testkit.FakeKafka(t, kfake.TLS(&tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: ours.Pool(),
		ClientAuth: tls.RequireAndVerifyClientCert,
	}))
	k := config.Kafka{Brokers: brokers, TLS: config.TLS{Enabled: true, CAFile: ca, CertFile: cert,
		KeyFile: key}}
	if err := kafka.Ping(t.Context(), connect(t, k)); err != nil {
		t.Error(err)
	}
	says := func(what string, k config.Kafka, want string) {
		t.Helper()
		if err := kafka.Ping(t.Context(), connect(t, k)); err == nil ||
			!strings.HasPrefix(err.Error(), "kafka.tls: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", what, err, want)
		}
	}
	named := k
	named.TLS.ServerName = "another"
	says("another name", named, "set server_name")
	nobody := k
	nobody.TLS.CertFile, nobody.TLS.KeyFile = "", ""
	says("no certificate of the client", nobody, "misses one")
	save(foreign)
	says("another authority", k, "ca_file must hold the authority")
}

// One connector serves all connections of a process: new ones take the files as they are then.
func TestNewConnectionsTakeRenewedFiles(t *testing.T) {
	a := testkit.NewAuthority(t)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	write := func(content []byte) {
		if err := os.WriteFile(ca, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(testkit.NewAuthority(t).PEM())
	pair, err := tls.X509KeyPair(a.Issue(testkit.Leaf{}))
	if err != nil {
		t.Fatal(err)
	}
	_, brokers := testkit.FakeKafka(t,
		kfake.TLS(&tls.Config{Certificates: []tls.Certificate{pair}}))
	client := connect(t, config.Kafka{Brokers: brokers, TLS: config.TLS{Enabled: true, CAFile: ca}})
	if err := client.Ping(t.Context()); err == nil {
		t.Fatal("a broker of another authority was believed")
	}
	write(a.PEM())
	testkit.Eventually(t, 30*time.Second, "a connection with the renewed file", func() bool {
		return client.Ping(t.Context()) == nil
	})
}

func TestBrokenCertificatesNameTheirSetting(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, conf := range map[string]config.TLS{
		"kafka.tls.ca_file: holds no certificate in PEM form": {Enabled: true, CAFile: text},
		"kafka.tls.cert_file and key_file: ": {Enabled: true, CertFile: text,
			KeyFile: text},
	} {
		_, err := kafka.NewConnector(t.Context(), config.Kafka{TLS: conf},
			slog.New(slog.DiscardHandler))
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
	log := slog.New(slog.DiscardHandler)
	connector, err := kafka.NewConnector(t.Context(), config.Kafka{Brokers: brokers}, log)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var clients []*kgo.Client
		for _, id := range []string{"lane-0", "lane-1"} {
			client, err := kgo.NewClient(connector.Options(id, registry, log)...)
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

// The fake Kafka logs in whoever asks.
func TestALoginThatNobodyAsksForIsToldAsSuch(t *testing.T) {
	client := connect(t, config.Kafka{Brokers: testkit.Kafka(t), SASL: config.SASL{
		Mechanism: config.SASLScram512, Username: "ann", Password: "secret"}})
	err := kafka.Ping(t.Context(), client)
	if err == nil || !strings.Contains(err.Error(), "kafka.sasl: ") ||
		!strings.Contains(err.Error(), "takes no login") {
		t.Error(err)
	}
}
