package command

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/dedup/embedded"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// nobody returns an address at which nobody listens.
func nobody(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// stopsWell ends a run as a signal does.
func (r *running) stopsWell() {
	r.t.Helper()
	r.stop()
	if code := <-r.code; code != 0 {
		r.t.Errorf("exit code %d:\n%s", code, r.out.String())
	}
}

// In a pod the containers start in any order, and a sidecar that ends keeps its application from
// starting.
func TestAStartWaitsForKafka(t *testing.T) {
	run := func(t *testing.T, brokers []string) {
		input := testkit.Topic(t, brokers, "orders", 1, nil)
		late := nobody(t)
		topics := strings.ReplaceAll(ordersTopic, "orders", input)
		if code, text := kdedup(t.Context(), "setup", "-c", write(t, brokers, topics)); code != 0 {
			t.Fatal(text)
		}
		r := start(t, write(t, []string{late}, topics))
		url := r.url()
		if got := get(t, url+"/healthz"); got != "ok\n" {
			t.Errorf("/healthz: %s", got)
		}
		testkit.Eventually(t, 30*time.Second, "the reason in /readyz", func() bool {
			text := get(t, url+"/readyz")
			return strings.HasPrefix(text, "start: kafka.brokers: ") &&
				strings.Contains(text, "connection refused")
		})
		if text := get(t, url+"/"); !strings.Contains(text, "connection refused") {
			testkit.Eventually(t, 30*time.Second, "the reason on the page", func() bool {
				return strings.Contains(get(t, url+"/api/status"), "connection refused")
			})
		}
		testkit.StartProxyAt(t, late, brokers[0])
		client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if err := client.ProduceSync(
			t.Context(), &kgo.Record{Topic: input, Key: []byte("a")},
		).FirstErr(); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, time.Minute, "the record is forwarded", func() bool {
			return strings.Contains(get(t, url+"/metrics"),
				fmt.Sprintf(`outcome="forwarded",topic=%q} 1`, input))
		})
		r.stopsWell()
	}
	testkit.Kafkas(t, 1, run)
}

// closer takes connections and closes them: a proxy or a load balancer whose server is down, or one
// that wants TLS. tried counts them.
func closer(t *testing.T) (address string, tried func() int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var (
		closing  sync.WaitGroup
		accepted atomic.Int64
	)
	closing.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			accepted.Add(1)
			conn.Close()
		}
	})
	t.Cleanup(func() { listener.Close(); closing.Wait() })
	return listener.Addr().String(), accepted.Load
}

func TestAStartWaitsForAKafkaThatClosesConnections(t *testing.T) {
	broker, tried := closer(t)
	waitsForClosed(t, start(t, write(t, []string{broker}, ordersTopic)), "start: kafka.brokers: ",
		tried)
}

// waitsForClosed wants the reason in /readyz, also after the next try.
func waitsForClosed(t *testing.T, r *running, reason string, tried func() int64) {
	t.Helper()
	url := r.url()
	told := func() bool { return strings.HasPrefix(get(t, url+"/readyz"), reason) }
	testkit.Eventually(t, 30*time.Second, "the reason in /readyz", told)
	seen := tried()
	testkit.Eventually(t, 30*time.Second, "another try, and the reason still in /readyz",
		func() bool {
			return tried() > seen && told()
		})
	r.stopsWell()
}

func TestAStartWaitsForTheStore(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	if code, text := kdedup(t.Context(), "setup", "-c", write(t, brokers, ordersTopic)); code != 0 {
		t.Fatal(text)
	}
	for name, settings := range map[string]string{
		"cassandra": "{type: cassandra, cassandra: {hosts: [%q], keyspace: kdedup, local_dc: dc1}}",
		"redis":     "{type: redis, redis: {addresses: [%q]}}",
		"postgres":  "{type: postgres, postgres: {hosts: [%q], database: kdedup, username: kdedup}}",
	} {
		file := func(t *testing.T, address string) (path string) {
			path = filepath.Join(t.TempDir(), "kdedup.yaml")
			text := fmt.Sprintf("instance: test\nkafka: {brokers: [%q]}\nstore: "+settings+
				"\nserver: {listen: \"127.0.0.1:0\"}\ntopics:\n%s",
				brokers[0], address, ordersTopic)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}
		t.Run(name+" that closes connections", func(t *testing.T) {
			t.Parallel()
			address, tried := closer(t)
			waitsForClosed(t, start(t, file(t, address)), "start: store."+name+": ", tried)
		})
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			late := nobody(t)
			r := start(t, file(t, late))
			url := r.url()
			testkit.Eventually(t, 30*time.Second, "the reason in /readyz", func() bool {
				return strings.HasPrefix(get(t, url+"/readyz"), "start: store."+name+": ")
			})
			testkit.Eventually(t, 30*time.Second, "the wait in the log", func() bool {
				return strings.Contains(r.out.String(), "trying again")
			})
			if got := get(t, url+"/healthz"); got != "ok\n" {
				t.Errorf("/healthz: %s", got)
			}
			if name == "redis" {
				testkit.StartProxyAt(t, late, servers.Redis(t))
				testkit.Eventually(t, time.Minute, "readiness", func() bool {
					text := get(t, url+"/readyz")
					return strings.Contains(text, "store: ok") && !strings.Contains(text, "start: ")
				})
			}
			r.stopsWell()
		})
	}
}

// A line that is no JSON is lost on who reads the log.
func TestAFatalErrorIsARecordOfTheLogInItsFormat(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	path := write(t, brokers, ordersTopic)
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append(text, "log: {format: json}\n"...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	code, printed := kdedup(t.Context(), "run", "-c", path)
	var last struct{ Level, Msg, Error string }
	for line := range strings.Lines(printed) {
		if err := json.Unmarshal([]byte(line), &last); err != nil {
			t.Errorf("%v: %s", err, line)
		}
	}
	if code != 1 || last.Level != "ERROR" ||
		!strings.Contains(last.Error,
			"topic orders.clean does not exist; run: kdedup setup -c "+path) {
		t.Errorf("exit code %d, the last record is %+v", code, last)
	}
}

// A look-up opens the files of an embedded store for a moment, and so does a process that ends.
func TestAStartWaitsForFilesThatAnotherProcessHasOpen(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	file := write(t, brokers, ordersTopic)
	if code, text := kdedup(t.Context(), "setup", "-c", file); code != 0 {
		t.Fatal(text)
	}
	c, err := config.Load(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	other, err := embedded.Open(embedded.Options{Path: c.Store.Embedded.Path})
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, file)
	url := r.url()
	testkit.Eventually(t, 30*time.Second, "the reason in /readyz", func() bool {
		return strings.Contains(get(t, url+"/readyz"), "used by another process")
	})
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 30*time.Second, "it is ready", func() bool {
		return strings.Contains(get(t, url+"/readyz"), "store: ok")
	})
	r.stopsWell()
}
