package command

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/internal/testkit"
)

func TestReadyBelievesWhomItIsToldTo(t *testing.T) {
	ours, foreign := testkit.NewAuthority(t), testkit.NewAuthority(t)
	dir := t.TempDir()
	save := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ca, other, text := save("ca.pem", ours.PEM()), save("other.pem", foreign.PEM()),
		save("text", []byte("no certificate"))
	pair, err := tls.X509KeyPair(ours.Issue(testkit.Leaf{}))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("ready\n"))
		}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	server.StartTLS()
	t.Cleanup(server.Close)
	for _, c := range []struct {
		name  string
		flags []string
		code  int
		says  string
	}{
		{"a server on the loopback may show any certificate", nil, 0, "ready"},
		{"its authority", []string{"--ca", ca}, 0, "ready"},
		{"its authority and one of its names", []string{"--ca", ca, "--server-name", "localhost"},
			0, "ready"},
		{"another authority", []string{"--ca", other}, 1, "signed by unknown authority"},
		{"another name", []string{"--ca", ca, "--server-name", "another"}, 1, "not another"},
		{"a name alone asks for the system's authorities", []string{"--server-name", "localhost"},
			1, "signed by unknown authority"},
		{"no such file", []string{"--ca", ca + ".none"}, 2, "--ca: open "},
		{"a file without a certificate", []string{"--ca", text}, 2,
			"holds no certificate in PEM form"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out := kdedup(t.Context(),
				append(append([]string{"ready"}, c.flags...), server.URL+"/readyz")...)
			if code != c.code || !strings.Contains(out, c.says) {
				t.Errorf("exit code %d, want %d: %s", code, c.code, out)
			}
		})
	}
	if code, out := kdedup(
		t.Context(), "ready", "--ca", ca, "http://127.0.0.1:1/readyz",
	); code != 2 || !strings.Contains(out, "need an https URL") {
		t.Errorf("without encryption: %d %s", code, out)
	}
}

func TestReadyAsksReadyzWhateverThePathAndBelievesOnlyItsAnswer(t *testing.T) {
	answer := "ready\n"
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" || r.URL.RawQuery != "" {
			_, _ = w.Write([]byte("ready\n"))
			t.Errorf("asked %s", r.URL)
			return
		}
		if status == http.StatusFound {
			w.Header().Set("Location", "/login")
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(server.Close)
	for _, path := range []string{"", "/", "/healthz", "/metrics", "/readyz", "/?a=b#c"} {
		if code, out := kdedup(t.Context(), "ready", server.URL+path); code != 0 {
			t.Errorf("%q: exit code %d: %s", path, code, out)
		}
	}
	if code, out := kdedup(
		t.Context(), "ready", strings.TrimPrefix(server.URL, "http://"),
	); code != 0 {
		t.Errorf("host and port: exit code %d: %s", code, out)
	}
	for _, c := range []struct {
		status int
		answer string
		ready  bool
	}{
		{200, "store: ok\ntopic orders: ok\n", true},
		{200, "store: ok\ntopic orders: ok\n  partition 3 is held\n", true},
		{200, "ok\n", false}, {200, "", false}, {200, "<html>ready</html>\n", false},
		{200, "not ready\n", false}, {200, "store: ok\ntopic orders: it failed\n", false},
		{200, "some page: ok\n", false},
		{302, "ready\n", false}, {401, "ready\n", false}, {503, "ready\n", false},
	} {
		status, answer = c.status, c.answer
		code, out := kdedup(t.Context(), "ready", server.URL)
		if (code == 0) != c.ready || code != 0 && !strings.Contains(out, server.URL) {
			t.Errorf("%d %q: exit code %d: %s", c.status, c.answer, code, out)
		}
	}
	for _, wrong := range []string{"ftp://localhost/", "http://", "http://%zz"} {
		if code, _ := kdedup(t.Context(), "ready", wrong); code != 2 {
			t.Errorf("%s: exit code %d", wrong, code)
		}
	}
}

func TestCommandsAskAtTheAddressOfTheEnvironment(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("ready\n"))
	}))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, listen := range []string{"127.0.0.1:" + port, ":" + port, "0.0.0.0:" + port,
		"[::]:" + port} {
		t.Setenv(config.EnvName("server.listen"), listen)
		if code, text := kdedup(t.Context(), "ready"); code != 0 {
			t.Errorf("%s: %d: %s", listen, code, text)
		}
	}
	t.Setenv(config.EnvName("server.listen"), "9480")
	if code, text := kdedup(t.Context(), "ready"); code != 2 ||
		!strings.Contains(text, "KDEDUP_SERVER_LISTEN: address 9480: missing port") {
		t.Errorf("%d: %s", code, text)
	}
	t.Setenv(config.EnvName("server.listen"), "127.0.0.1:1")
	if code, text := kdedup(t.Context(), "ready", server.URL); code != 0 {
		t.Errorf("an argument counts before the environment: %d: %s", code, text)
	}
}
