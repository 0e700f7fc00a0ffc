package command

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kdedup/kdedup/internal/testkit"
)

// serving starts kdedup serve on a file until the test ends.
func serving(t *testing.T, file string) (out *testkit.Printed, stop func() int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kdedup.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	out = &testkit.Printed{}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan int, 1)
	go func() { ended <- executeTo(ctx, []string{"serve", "-c", path}, out) }()
	code := -1
	stop = func() int {
		cancel()
		if code < 0 {
			code = <-ended
		}
		return code
	}
	t.Cleanup(func() { stop() })
	return out, stop
}

// urlAfter finds an address in the log.
func urlAfter(t *testing.T, out *testkit.Printed, key string) (url string) {
	t.Helper()
	testkit.Eventually(t, 30*time.Second, key, func() bool {
		_, rest, found := strings.Cut(out.String(), key+"=")
		url, _, _ = strings.Cut(rest, "\n")
		return found
	})
	return strings.Fields(url)[0]
}

func callAPI(t *testing.T, url, token, body string) (status int, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url,
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func TestServeAnswersTheAPIWithoutTopicsAndWithoutKafka(t *testing.T) {
	file := fmt.Sprintf(`
store: {type: embedded, embedded: {path: %s}}
server: {listen: "127.0.0.1:0"}
api:
  listen: 127.0.0.1:0
  scopes: [{name: orders, ttl: 1h}, {name: payments}]
  keys: {path: %s}
  callers:
    - {name: shipping, token: the token of shipping, scopes: [orders]}
`, t.TempDir(), t.TempDir())
	const method, token = "/kdedup.v1.ClaimService/Judge", "the token of shipping"
	const order = `{"scope": "%s", "messages": [{"id": "a", "place": {"text": "%s"}}]}`
	for round, want := range []string{"VERDICT_FIRST", "VERDICT_MINE"} { // over a restart
		out, stop := serving(t, file)
		url := urlAfter(t, out, "url")
		status, answer := callAPI(t, url+method, token, fmt.Sprintf(order, "orders", "1"))
		if status != http.StatusOK || !strings.Contains(answer, want) {
			t.Errorf("round %d: %d %s, want %s", round, status, answer, want)
		}
		status, answer = callAPI(t, url+method, token, fmt.Sprintf(order, "orders", "2"))
		if status != http.StatusOK || !strings.Contains(answer, "VERDICT_DUPLICATE") {
			t.Errorf("round %d: a copy: %d %s", round, status, answer)
		}
		outcome := []string{"acquired", "inProgress"}[round]
		status, answer = callAPI(t, url+"/kdedup.v1.IdempotencyService/Begin", token,
			`{"scope": "orders", "key": "k", "hold": "600s",
			  "requestHash": "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ="}`)
		if status != http.StatusOK || !strings.Contains(answer, outcome) {
			t.Errorf("round %d: begin: %d %s, want %s", round, status, answer, outcome)
		}
		for wrong, want := range map[string]int{"another token of 30": 401, token: 403} {
			if status, answer := callAPI(t, url+method, wrong,
				fmt.Sprintf(order, "payments", "1")); status != want {
				t.Errorf("round %d: %s: %d %s", round, wrong, status, answer)
			}
		}
		testkit.Eventually(t, 30*time.Second, "readiness", func() bool { // it asks once a second
			code, _ := kdedup(t.Context(), "ready", urlAfter(t, out, "page"))
			return code == 0
		})
		wantOnThePage(t, urlAfter(t, out, "page"), token)
		if code := stop(); code != exitStopped || strings.Contains(out.String(), token) {
			t.Errorf("round %d: exit code %d:\n%s", round, code, out)
		}
	}
}

// wantOnThePage looks for the API on the page of operators, in its JSON and in the terminal.
func wantOnThePage(t *testing.T, page, token string) {
	t.Helper()
	var shown string
	testkit.Eventually(t, 30*time.Second, "the requests on the page", func() bool {
		shown = get(t, page+"/api/status")
		return strings.Contains(shown, `"name":"permission_denied","total":1`)
	})
	_, inTerminal := kdedup(t.Context(), "status", page)
	shown += get(t, page) + inTerminal
	for _, want := range []string{`"name":"shipping","proof":"token","scopes":["orders"]`,
		`"address":"http://127.0.0.1:`, `"name":"stranger","total":1`, `"keys_in_hand":`,
		"requests under way · keys in files", "1 refused: stranger", "shipping  "} {
		if !strings.Contains(shown, want) {
			t.Errorf("the page does not show %s:\n%s", want, shown)
		}
	}
	if strings.Contains(shown, token) {
		t.Error("the page shows a token")
	}
}

func TestACommandOfPipelinesRefusesAFileWithAnAPIAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kdedup.yaml")
	file := "store: {type: embedded}\napi: {scopes: [{name: orders}]}\n"
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"run", "validate", "report"} {
		code, text := kdedup(t.Context(), command, "-c", path)
		if code != exitUsage || !strings.Contains(text, "topics: is required") ||
			!strings.Contains(text, "kdedup serve") {
			t.Errorf("%s: exit code %d: %s", command, code, text)
		}
	}
	file = "kafka: {brokers: [localhost:9092]}\n"
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, text := kdedup(t.Context(), "serve", "-c", path); code != exitUsage {
		t.Errorf("serve without scopes: exit code %d: %s", code, text)
	}
}
