package command

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/kdedup/kdedup/internal/testkit"
)

// shownStatus is a part of /api/status.
type shownStatus struct {
	State     string
	Pipelines []struct {
		Input, Output string
		Records       struct{ Total float64 }
		Lag           struct{ Records *int64 }
		Outcomes      []struct {
			Name  string
			Total float64
		}
		Lanes []struct {
			State      string
			Partitions int
		}
		Partitions []struct {
			Partition int
			Done_to   int64
		}
	}
	Store struct {
		Type, State string
		Claims      struct{ Total float64 }
		Facts       []struct {
			Name  string
			Value float64
		}
	}
	Events []struct{ Message, Topic string }
}

func statusOf(t *testing.T, url string) (s shownStatus) {
	t.Helper()
	text := get(t, url+"/api/status")
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return s
}

func TestTheStatusPageShowsTheRunningProcess(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(4, "orders"))
	path := write(t, brokers, ordersTopic+"    lanes: 2\n")
	if code, text := kdedup(t.Context(), "setup", "-c", path); code != 0 {
		t.Fatal(text)
	}
	r := start(t, path)
	base := r.url()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	testkit.Eventually(t, 2*time.Minute, "two partitions for each lane", func() bool {
		s := statusOf(t, base)
		return s.State == "ready" && s.Pipelines[0].Lanes[0].Partitions == 2 &&
			s.Pipelines[0].Lanes[1].Partitions == 2
	})
	for _, key := range []string{"a", "b", "a", "\xff\x00"} {
		if err := client.ProduceSync(
			t.Context(), &kgo.Record{Topic: "orders", Partition: 2, Key: []byte(key),
				Value: []byte("v")},
		).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	var s shownStatus
	testkit.Eventually(t, 2*time.Minute, "all of it on the page", func() bool {
		s = statusOf(t, base)
		return s.State == "ready" && s.Pipelines[0].Records.Total == 4 &&
			s.Pipelines[0].Lag.Records != nil && *s.Pipelines[0].Lag.Records == 0
	})
	p := s.Pipelines[0]
	if p.Input != "orders" || p.Output != "orders.clean" || p.Outcomes[0].Total != 3 ||
		p.Outcomes[1].Name != "duplicate" || p.Outcomes[1].Total != 1 {
		t.Errorf("pipeline: %+v", p)
	}
	if len(p.Lanes) != 2 || p.Lanes[0].State != "running" ||
		p.Lanes[0].Partitions+p.Lanes[1].Partitions != 4 {
		t.Errorf("lanes: %+v", p.Lanes)
	}
	if len(p.Partitions) != 4 || p.Partitions[2].Partition != 2 || p.Partitions[2].Done_to != 4 {
		t.Errorf("partitions: %+v", p.Partitions)
	}
	if s.Store.Type != "embedded" || s.Store.State != "up" || s.Store.Claims.Total < 3 {
		t.Errorf("store: %+v", s.Store)
	}
	if disk := s.Store.Facts[0]; disk.Name != "disk_used" || disk.Value == 0 {
		t.Errorf("what the store tells: %+v", s.Store.Facts)
	}
	if page := get(t, base+"/"); !strings.Contains(page, "orders.clean") ||
		!strings.Contains(page, "topics[0].consumer_group") {
		t.Errorf("the page lacks something:\n%s", page)
	}
	answers := lookUps(t, base)
	r.stop()
	<-r.code
	for id, answer := range answers { // the same as on the command line, field by field
		var text strings.Builder
		code := Execute(t.Context(), []string{"id", "lookup", "-c", path, "--json", "--hex",
			fmt.Sprintf("%x", id)}, &text, io.Discard)
		if diff := cmp.Diff(text.String(), answer); code != 0 || diff != "" {
			t.Errorf("%q: exit code %d, command and page differ:\n%s", id, code, diff)
		}
	}
}

// lookUps asks for some IDs, as text and in hexadecimal digits, and returns the JSON answers.
func lookUps(t *testing.T, base string) map[string]string {
	t.Helper()
	answers := map[string]string{}
	for id, want := range map[string]string{
		"a": `"owner_partition":2,"owner_offset":0`, "\xff\x00": `"id":"ff00"`,
		"none": `"seen":false`,
	} {
		answer, err := http.PostForm(base+"/api/lookup",
			url.Values{"id": {fmt.Sprintf("%x", id)}, "hex": {"1"}})
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || !strings.Contains(string(text), want) || id != "none" &&
			!strings.Contains(string(text), `"forwarded":"yes"`) {
			t.Errorf("%q: %v, %s", id, err, text)
		}
		answers[id] = string(text)
	}
	http.DefaultClient.CloseIdleConnections()
	return answers
}

// Secrets of all kinds, each in the place where it belongs.
const (
	kafkaSecret  = "kafka-s3cr3t"
	cassSecret   = "cassandra-s3cr3t"
	pgSecret     = "postgres-s3cr3t"
	serverSecret = "server-s3cr3t"
	keySecret    = "key-s3cr3t" // in the name of each private key
)

// certificate writes a certificate for 127.0.0.1 and its key, and returns their paths.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), keySecret+".pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der},
		key: {Type: "PRIVATE KEY", Bytes: raw}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// fullOfSecrets is a configuration with a secret wherever there can be one, and the store in files.
func fullOfSecrets(t *testing.T, brokers []string, cert, key string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kdedup.yaml")
	text := fmt.Sprintf(`
instance: test
log: {level: debug}
kafka:
  brokers: [%q]
  tls: {enabled: true, ca_file: %q, cert_file: %q, key_file: %q}
  sasl: {mechanism: plain, username: kafka-user, password: %s}
store:
  type: embedded
  embedded: {path: %q}
  cassandra: {username: cassandra-user, password: %s, tls: {enabled: true, cert_file: %q, key_file: %q}}
  postgres: {username: postgres-user, password: %s, tls: {enabled: true, cert_file: %q, key_file: %q}}
server:
  listen: 127.0.0.1:0
  auth: {username: ops, password: %s}
  tls: {cert_file: %q, key_file: %q}
topics:
%s`, brokers[0], cert, cert, key, kafkaSecret, filepath.Join(t.TempDir(), "data"), cassSecret, cert, key, pgSecret, cert, key, serverSecret, cert, key, ordersTopic)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// secretBrokers are a Kafka that wants TLS and a password.
func secretBrokers(t *testing.T, cert, key string) (*kfake.Cluster, []string) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	cluster, brokers := testkit.FakeKafka(t, kfake.SeedTopics(2, "orders"), kfake.EnableSASL(),
		kfake.Superuser("PLAIN", "kafka-user", kafkaSecret),
		kfake.TLS(&tls.Config{Certificates: []tls.Certificate{pair}}))
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...),
		kgo.DialTLSConfig(&tls.Config{InsecureSkipVerify: true}),
		kgo.SASL(plain.Auth{User: "kafka-user", Pass: kafkaSecret}.AsMechanism()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.ProduceSync(
		t.Context(), &kgo.Record{Topic: "orders", Key: []byte("a")},
	).FirstErr(); err != nil {
		t.Fatal(err)
	}
	return cluster, brokers
}

// No secret gets into the page, its JSON, the metrics, the log or an error, whether all is well or
// the key is gone and Kafka with it.
func TestNoSecretEverShows(t *testing.T) {
	cert, key := certificate(t)
	content, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	cluster, brokers := secretBrokers(t, cert, key)
	path := fullOfSecrets(t, brokers, cert, key)
	seen := map[string]string{}
	_, seen["validate"] = kdedup(t.Context(), "validate", "-c", path)
	code, text := kdedup(t.Context(), "setup", "-c", path)
	if code != 0 {
		t.Fatal(text)
	}
	seen["setup"] = text
	r := start(t, path)
	base := strings.Replace(r.url(), "http:", "https:", 1)
	ask := secretAsker(t, base)
	testkit.Eventually(t, 2*time.Minute, "a record on the page", func() bool {
		return strings.Contains(ask("GET", "/api/status", ""), `"name":"forwarded","total":1`) &&
			strings.HasPrefix(ask("GET", "/readyz", ""), "store: ok\ntopic orders: ok")
	})
	collect := func(when string) {
		for _, p := range []string{"/", "/api/status", "/api/config", "/metrics", "/readyz"} {
			seen[when+p] = ask("GET", p, "")
		}
		seen[when+"/api/lookup"] = ask("POST", "/api/lookup", "id=a")
	}
	collect("well ")
	if code, text := kdedup(t.Context(), "ready", base+"/readyz"); code != 0 || text != "ready\n" {
		t.Errorf("a probe over TLS without password: exit code %d: %s", code, text)
	}
	if !strings.Contains(seen["well /api/config"], `"value":"[hidden]"`) ||
		!strings.Contains(seen["well /"], "kafka-user") {
		t.Error("the configuration is not shown, so this test shows nothing")
	}
	seen["bundle"] = bundled(t, base, "--username", "ops", "--password-file", passwordFile(t))
	if !strings.Contains(seen["bundle"], "kafka-user") {
		t.Error("the bundle does not have the configuration, so this test shows nothing")
	}
	cluster.Close()
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 2*time.Minute, "a failure on the page", func() bool {
		return strings.Contains(ask("GET", "/api/status", ""), "lane failed")
	})
	collect("ill ")
	r.stop()
	<-r.code
	seen["log"] = r.out.String()
	_, seen["error"] = kdedup(t.Context(), "run", "-c", path)
	for what, text := range seen {
		for _, secret := range []string{kafkaSecret, cassSecret, serverSecret,
			strings.Split(string(content), "\n")[1]} {
			if strings.Contains(text, secret) {
				t.Errorf("%s shows %s", what, secret)
			}
		}
		// Whoever reads the log, or starts the process, has to know which file is missing.
		if what != "log" && what != "error" && strings.Contains(text, keySecret) {
			t.Errorf("%s shows where a key is", what)
		}
	}
}

// secretAsker sends requests with the password.
func secretAsker(t *testing.T, base string) func(method, path, form string) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	return func(method, path, form string) string {
		request, err := http.NewRequestWithContext(t.Context(), method, base+path,
			strings.NewReader(form))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.SetBasicAuth("ops", serverSecret)
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		return bodyOf(t, answer)
	}
}
