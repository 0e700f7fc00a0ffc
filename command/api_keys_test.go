package command

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// askKeys calls a method of the IdempotencyService and reads its answer.
func askKeys(t *testing.T, url, method, body string) map[string]map[string]any {
	t.Helper()
	status, text := callAPI(t, url+"/kdedup.v1.IdempotencyService/"+method, "", body)
	answer := make(map[string]map[string]any)
	if status != http.StatusOK {
		t.Fatalf("%s: %d %s", method, status, text)
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatalf("%s: %v: %s", method, err, text)
	}
	return answer
}

func TestAnyNumberOfServersShareTheKeysOfAStore(t *testing.T) {
	for name, store := range map[string]func(*testing.T) string{
		"redis": func(t *testing.T) string {
			return fmt.Sprintf("{type: redis, redis: {addresses: [%q], key_prefix: %s}}",
				servers.Redis(t), testkit.Keyspace(t))
		},
		"postgres": func(t *testing.T) string {
			return fmt.Sprintf("{type: postgres, postgres: {hosts: [%q], database: postgres, "+
				"username: postgres, schema: %s}}", testkit.Postgres(t), testkit.Keyspace(t))
		},
		"cassandra": func(t *testing.T) string {
			return fmt.Sprintf("{type: cassandra, cassandra: {hosts: [%q], keyspace: %s, "+
				"timeout: 20s, connections: 1}}", testkit.Cassandra(t), testkit.Keyspace(t))
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := fmt.Sprintf("store: %s\nserver: {listen: 127.0.0.1:0}\napi: {listen: "+
				"127.0.0.1:0, scopes: [{name: payments}], keys: {type: store}}\n", store(t))
			path := filepath.Join(t.TempDir(), "kdedup.yaml")
			if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
				t.Fatal(err)
			}
			for range 2 { // a second one changes nothing
				if code, text := kdedup(t.Context(), "setup", "-c", path); code != 0 {
					t.Fatal(text)
				}
			}
			testSharedKeys(t, file)
			testOneEffect(t, file)
		})
	}
}

func testSharedKeys(t *testing.T, file string) {
	var urls []string
	for range 2 {
		out, _ := serving(t, file)
		urls = append(urls, urlAfter(t, out, " url"))
	}
	const key = `"scope": "payments", "key": "k"`
	const begin = `{` + key + `, "hold": "600s",
		"requestHash": "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ="}`
	acquired := askKeys(t, urls[0], "Begin", begin)["acquired"]
	if acquired == nil {
		t.Fatal("the key was not acquired")
	}
	if got := askKeys(t, urls[1], "Begin", begin); got["inProgress"] == nil {
		t.Fatalf("another server: %v, want that the key is in progress", got)
	}
	lease := fmt.Sprintf(`{%s, "lease": %q, "response": "cmVjZWlwdA=="}`, key, acquired["lease"])
	askKeys(t, urls[1], "Complete", lease) // a lease belongs to the store, not to a server
	for _, url := range urls {
		if got := askKeys(t, url, "Begin", begin)["completed"]["response"]; got != "cmVjZWlwdA==" {
			t.Errorf("the response is %v", got)
		}
		other := strings.Replace(begin, "LPJN", "LPJM", 1)
		if got := askKeys(t, url, "Begin", other); got["conflict"] == nil {
			t.Errorf("another request: %v", got)
		}
	}
}

// testOneEffect has 200 callers of one key at two servers: one acquires it, and all hear of its
// outcome.
func testOneEffect(t *testing.T, file string) {
	var urls [2]string
	for i := range urls {
		out, _ := serving(t, file)
		urls[i] = urlAfter(t, out, " url")
	}
	const key = `"scope": "payments", "key": "of 200 callers"`
	const begin = `{` + key + `, "hold": "600s", "wait": "50s",
		"requestHash": "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ="}`
	var effects, heard atomic.Int64
	var callers sync.WaitGroup
	for i := range 200 {
		callers.Go(func() {
			for t.Context().Err() == nil {
				got := askKeys(t, urls[i%2], "Begin", begin)
				if got["inProgress"] != nil {
					continue // it has waited
				}
				if acquired := got["acquired"]; acquired != nil {
					effects.Add(1)
					askKeys(t, urls[(i+1)%2], "Complete", fmt.Sprintf(
						`{%s, "lease": %q, "response": "cmVjZWlwdA=="}`, key, acquired["lease"]))
					continue
				}
				if got["completed"]["response"] == "cmVjZWlwdA==" {
					heard.Add(1)
				}
				return
			}
		})
	}
	callers.Wait()
	if effects.Load() != 1 || heard.Load() != 200 {
		t.Errorf("%d effects, and %d of 200 callers heard of it", effects.Load(), heard.Load())
	}
}
