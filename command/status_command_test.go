package command

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

func TestStatusShowsWhatThePageShows(t *testing.T) {
	status, err := os.ReadFile("../process/server/testdata/status.json")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if r.URL.Path != "/api/status" || user != "" && password != "secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write(status)
	}))
	defer server.Close()
	right, wrong := filepath.Join(t.TempDir(), "right"), filepath.Join(t.TempDir(), "wrong")
	for path, text := range map[string]string{right: "secret\n", wrong: "other"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cases := []struct {
		name  string
		flags []string
		code  int
		says  []string
	}{
		{"a process that is not ready", nil, 1, []string{
			"kdedup-0  not ready  v1.2.3", "topic refunds: lane 0: has not joined",
			server.URL + "\n", "FORWARDED  COPIES  DEAD LETTERS",
			"blocked  orders -> orders.clean    13,888     11.1 %", "orders[5] held at offset 7",
			"error  lane stopped; orders lane 1; the input topic was replaced; reset the group",
			"api  http://127.0.0.1:9481  waiting  12,345 requests/s, 3 under way, 2 refused: stranger",
			"the store <is> away", "mails  12,345", "shop    12,345      token",
			"kafka  input  up  a:9092,b:9092  MkU3OEVBNTcwNTJENDM2Qk",
			"kafka  output  down  c:9092", "cluster of the output: no broker answers",
			"kdedup: kdedup-0 is not ready"}},
		{"with its password", []string{"--username", "a", "--password-file", right}, 1,
			[]string{"kdedup-0  not ready"}},
		{"with another", []string{"--username", "a", "--password-file", wrong}, 1,
			[]string{"wants a password"}},
		{"a name alone", []string{"--username", "a"}, 2, []string{"belong together"}},
		{"too often", []string{"--every", "1ms"}, 2, []string{"--every must be at least 100ms"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			code, text := kdedup(t.Context(), append(append([]string{"status"}, c.flags...),
				server.URL)...)
			for _, want := range c.says {
				if code != c.code || !strings.Contains(text, want) {
					t.Errorf("exit code %d, want %d with %q in\n%s", code, c.code, want, text)
				}
			}
		})
	}
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	if code, text := kdedup(t.Context(), "status", other.URL); code != 1 ||
		!strings.Contains(text, "404") {
		t.Errorf("another server: %d: %s", code, text)
	}
}

// The process comes and goes; control characters of a record do not reach the terminal.
func TestStatusWatchesUntilItIsStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch asked.Add(1) {
		case 1:
			_, _ = w.Write([]byte(`{"process": {"instance": "a"}, "state": "ready", ` +
				`"events": [{"message": "id \u001b[2J"}]}`))
		case 2:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 3:
			_, _ = w.Write([]byte(`{"process": {"instance": "a"}, "state": "starting"}`))
		default:
			stop()
		}
	}))
	defer server.Close()
	code, text := kdedup(ctx, "status", "--watch", "--every", "100ms", server.URL)
	for _, want := range []string{"a  ready", "id \uFFFD[2J", "503 Service Unavailable",
		"a  starting"} {
		if code != 0 || !strings.Contains(text, want) {
			t.Errorf("exit code %d, want %q in\n%s", code, want, text)
		}
	}
}
