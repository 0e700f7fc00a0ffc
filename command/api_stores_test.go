package command

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// apiOf is a file of kdedup serve on a store.
func apiOf(store, group string) string {
	return fmt.Sprintf("store: %s\nserver: {listen: 127.0.0.1:0}\napi: {listen: 127.0.0.1:0, "+
		"scopes: [{name: checks, ttl: 1h%s}]}\n", store, group)
}

// onLogOf is a file of kdedup serve on the claim log of orders-dedup.
func onLogOf(t *testing.T, brokers []string, instance, keepers string) string {
	t.Helper()
	return fmt.Sprintf("instance: %s\nkafka: {brokers: [%s]}\ntopics:%s", instance,
		strings.Join(brokers, ", "), ordersTopic) +
		apiOf(fmt.Sprintf("{type: kafka, kafka: {path: %q}%s}", t.TempDir(), keepers),
			", group: orders-dedup")
}

// setUpAPI runs setup on a file.
func setUpAPI(t *testing.T, file string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kdedup.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, text := kdedup(t.Context(), "setup", "-c", path, "--skip-self-test"); code != 0 {
		t.Fatal(text)
	}
	return file
}

// Two servers of one store, and a third where keepers share a claim log out, answer as one.
func TestServersOfOneStoreGiveTheSameVerdicts(t *testing.T) {
	both := func(file string) []string { return []string{file, file} }
	for name, files := range map[string]func(t *testing.T) []string{
		"redis": func(t *testing.T) []string {
			return both(setUpAPI(t, apiOf(fmt.Sprintf("{type: redis, redis: {addresses: [%q], "+
				"key_prefix: %s}}", servers.Redis(t), testkit.Keyspace(t)), "")))
		},
		"postgres": func(t *testing.T) []string {
			return both(setUpAPI(t, apiOf(fmt.Sprintf("{type: postgres, postgres: {hosts: [%q], "+
				"database: postgres, username: postgres, schema: %s}}", testkit.Postgres(t),
				testkit.Schema(t)), "")))
		},
		"cassandra": func(t *testing.T) []string {
			return both(setUpAPI(t, apiOf(fmt.Sprintf("{type: cassandra, cassandra: {hosts: [%q], "+
				"keyspace: %s, timeout: 20s, connections: 1}}", testkit.Cassandra(t),
				testkit.Keyspace(t)), "")))
		},
		"claim log": func(t *testing.T) []string {
			_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(2, "orders"))
			return []string{setUpAPI(t, onLogOf(t, brokers, "a", "")),
				onLogOf(t, brokers, "b", "")}
		},
		"keepers": func(t *testing.T) []string {
			_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(2, "orders"))
			const keepers = ", keepers: {keep: %s, listen: '127.0.0.1:0', " +
				"secret: 0123456789abcdef0123456789abcdef}"
			shared := fmt.Sprintf(keepers, "shared")
			return []string{setUpAPI(t, onLogOf(t, brokers, "a", shared)),
				onLogOf(t, brokers, "b", shared),
				onLogOf(t, brokers, "c", fmt.Sprintf(keepers, "none"))}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var urls []string
			for _, file := range files(t) {
				out, _ := serving(t, file)
				urls = append(urls, urlAfter(t, out, " url"))
			}
			givesTheSameVerdicts(t, urls)
		})
	}
}

var verdictOf = regexp.MustCompile(`VERDICT_([A-Z]+)`)

func givesTheSameVerdicts(t *testing.T, urls []string) {
	call := func(n int, method, body string) string {
		t.Helper()
		var text string
		testkit.Eventually(t, time.Minute, method, func() bool { // the shards find their keepers
			var status int
			status, text = callAPI(t, urls[n%len(urls)]+"/kdedup.v1.ClaimService/"+method, "", body)
			return status == http.StatusOK
		})
		return text
	}
	judge := func(n int, offset, fingerprint string, want string) {
		t.Helper()
		var messages, verdicts []string
		for id := range 20 { // of several shards
			messages = append(messages, fmt.Sprintf(`{"id": "order-%d", "place": {"record": `+
				`{"topic": "orders", "partition": 3, "offset": %q}}, "fingerprint": %q}`, id, offset,
				fingerprint))
		}
		answer := call(n, "Judge", `{"scope": "checks", "messages": [`+
			strings.Join(messages, ", ")+`]}`)
		for _, found := range verdictOf.FindAllStringSubmatch(answer, -1) {
			verdicts = append(verdicts, found[1])
		}
		if !slices.Equal(verdicts, slices.Repeat([]string{want}, 20)) {
			t.Errorf("server %d: %v, want %s", n, verdicts, want)
		}
	}
	const content, other = "MDEyMzQ1Njc4OWFiY2RlZg==", "MTEyMzQ1Njc4OWFiY2RlZg=="
	judge(0, "812", content, "FIRST")
	for n := range urls {
		judge(n, "812", content, "MINE")
		judge(n, "813", content, "DUPLICATE")
		judge(n, "813", other, "CONFLICT")
		if got := call(n, "Lookup", `{"scope": "checks", "id": "order-7"}`); !strings.Contains(
			got, content) {
			t.Errorf("server %d finds %s", n, got)
		}
	}
	call(1, "Release", `{"scope": "checks", "id": "order-7"}`)
	if got := call(0, "Lookup", `{"scope": "checks", "id": "order-7"}`); strings.Contains(got,
		"owner") {
		t.Errorf("after its release the ID has the owner %s", got)
	}
}
