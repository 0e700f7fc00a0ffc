package e2e_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// keyServer is a kdedup serve that is killed and started again at one address.
type keyServer struct {
	t       *testing.T
	config  string
	url     string
	process *exec.Cmd
}

func (s *keyServer) start() {
	s.t.Helper()
	s.process = exec.Command(kdedup, "serve", "-c", s.config)
	s.process.Env = testkit.Environment()
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *keyServer) kill() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}

type keyAnswer struct {
	Acquired  *struct{ Lease string }
	Completed *struct{ Response string }
}

// ask repeats what got no answer of the service; refused says that the lease was lost.
func (s *keyServer) ask(client *http.Client, method, body string) (a keyAnswer, refused bool) {
	for s.t.Context().Err() == nil {
		response, err := client.Post(s.url+"/kdedup.v1.IdempotencyService/"+method,
			"application/json", bytes.NewBufferString(body))
		if err != nil {
			continue // it was killed
		}
		text, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		switch {
		case err != nil || response.StatusCode >= http.StatusInternalServerError:
			continue
		case response.StatusCode == http.StatusBadRequest:
			return a, true
		case response.StatusCode != http.StatusOK:
			s.t.Errorf("%s: %d %s", method, response.StatusCode, text)
			return a, true
		}
		if err := json.Unmarshal(text, &a); err != nil {
			s.t.Errorf("%s: %v: %s", method, err, text)
		}
		return a, false
	}
	return a, true
}

// execute runs a key to its end, and returns the response that counts: that of the effect whose
// Complete was acknowledged.
func (s *keyServer) execute(client *http.Client, key, caller string) string {
	for attempt := 0; s.t.Context().Err() == nil; attempt++ {
		got, _ := s.ask(client, "Begin", fmt.Sprintf(`{"scope": "payments", "key": %q, `+
			`"hold": "1s", "wait": "2s", `+
			`"requestHash": "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ="}`, key))
		if got.Completed != nil {
			return got.Completed.Response
		}
		if got.Acquired == nil {
			continue // in progress
		}
		response := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%s-%d", caller, attempt))
		if _, lost := s.ask(client, "Complete", fmt.Sprintf(`{"scope": "payments", "key": %q, `+
			`"lease": %q, "response": %q}`, key, got.Acquired.Lease, response)); !lost {
			return response
		}
	}
	return ""
}

// Wherever the kill falls in Begin or Complete, all callers of a key hear of one response.
func TestAKilledServerOfTheAPIGivesEachKeyOneOutcome(t *testing.T) {
	t.Parallel()
	for name, stores := range map[string]func(*testing.T) (store, keys string){
		"files": func(t *testing.T) (string, string) {
			return embeddedStore(t), fmt.Sprintf("{path: %q}", t.TempDir())
		},
		"redis": func(t *testing.T) (string, string) {
			return fmt.Sprintf("{type: redis, redis: {addresses: [%q], key_prefix: %s}}",
				servers.Redis(t), testkit.Keyspace(t)), "{type: store}"
		},
		"postgres": func(t *testing.T) (string, string) {
			return fmt.Sprintf("{type: postgres, postgres: {hosts: [%q], database: postgres, "+
				"username: postgres, schema: %s}}", testkit.Postgres(t),
				testkit.Keyspace(t)), "{type: store}"
		},
		"cassandra": func(t *testing.T) (string, string) {
			return cassandraStore(testkit.Cassandra(t), testkit.Keyspace(t)), "{type: store}"
		},
	} {
		t.Run(name, func(t *testing.T) {
			store, keys := stores(t)
			testKilledKeys(t, store, keys)
		})
	}
}

func testKilledKeys(t *testing.T, store, keys string) {
	const callers, each, kills = 6, 60, 4
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	s := &keyServer{t: t, config: filepath.Join(t.TempDir(), "kdedup.yaml"),
		url: "http://" + address}
	text := fmt.Sprintf("store: %s\nserver: {listen: 127.0.0.1:0}\napi: {listen: %q, scopes: "+
		"[{name: payments}], keys: %s}\n", store, address, keys)
	if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	setup := exec.Command(kdedup, "setup", "-c", s.config, "--skip-self-test")
	setup.Env = testkit.Environment()
	if said, err := setup.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	s.start()
	defer func() { s.kill() }()
	var mu sync.Mutex
	heard := make(map[string]map[string]bool) // the responses of each key
	var done atomic.Int64
	var running sync.WaitGroup
	for caller := range callers {
		running.Go(func() {
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
			for n := range each {
				key := fmt.Sprint("key-", (n+caller*each/callers)%each) // each has all
				response := s.execute(client, key, fmt.Sprint("caller-", caller))
				mu.Lock()
				if heard[key] == nil {
					heard[key] = make(map[string]bool)
				}
				heard[key][response] = true
				mu.Unlock()
				done.Add(1)
			}
		})
	}
	for kill := range kills {
		testkit.Eventually(t, time.Minute, "some outcomes", func() bool {
			return done.Load() >= int64(callers*each*(kill+1)/(kills+2))
		})
		s.kill()
		s.start()
	}
	running.Wait()
	if len(heard) != each {
		t.Errorf("%d keys have an outcome, want %d", len(heard), each)
	}
	for key, responses := range heard {
		if len(responses) != 1 || responses[""] {
			t.Errorf("%s has the outcomes %v", key, responses)
		}
	}
}
