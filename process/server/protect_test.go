package server_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/kdedup/kdedup/process/server"
)

func TestOnlyOwnNamesAreAnswered(t *testing.T) {
	for _, c := range []struct {
		name, listen string
		hosts        []string
		host         string
		status       int
	}{
		{"local, by address", "127.0.0.1:0", nil, "127.0.0.1:9480", 200},
		{"local, by IPv6", "127.0.0.1:0", nil, "[::1]:9480", 200},
		{"local, by IPv6 without port", "127.0.0.1:0", nil, "[::1]", 200},
		{"local, by name", "127.0.0.1:0", nil, "LocalHost:9480", 200},
		{"local, a rebound name", "127.0.0.1:0", nil, "evil.example:9480", 421},
		{"local, a rebound name like ours", "127.0.0.1:0", nil, "localhost.evil.example", 421},
		{"local, a configured name", "127.0.0.1:0", []string{"kdedup.example"}, "kdedup.example",
			200},
		{"local, a configured name with a dot", "127.0.0.1:0", []string{"Kdedup.example"},
			"kdedup.example.:80", 200},
		{"local, another than the configured", "127.0.0.1:0", []string{"kdedup.example"},
			"evil.example", 421},
		{"everywhere, any name", "0.0.0.0:0", nil, "anything.example", 200},
		{"everywhere, the configured name", "0.0.0.0:0", []string{"kdedup.example"},
			"kdedup.example", 200},
		{"everywhere, another than the configured", "0.0.0.0:0", []string{"kdedup.example"},
			"evil.example", 421},
		{"everywhere, localhost without being configured", "0.0.0.0:0", []string{"kdedup.example"},
			"localhost", 421},
		{"everywhere, a probe by address", "0.0.0.0:0", []string{"kdedup.example"}, "10.1.2.3:9480",
			200},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options()
			o.Listen, o.Hosts = c.listen, c.hosts
			url := strings.NewReplacer("0.0.0.0", "127.0.0.1", "[::]",
				"127.0.0.1").Replace(start(t, o))
			for _, path := range []string{"/", "/api/status", "/metrics", "/healthz"} {
				answer, body := ask(t, "GET", url+path, "", func(r *http.Request) {
					r.Host = c.host
				})
				if answer.StatusCode != c.status || strings.Contains(body, "evil") {
					t.Errorf("%s: got %d %.80q, want %d", path, answer.StatusCode, body, c.status)
				}
			}
		})
	}
}

const password = "correct horse battery"

func withAuth() server.Options {
	o := options()
	o.Auth = server.Auth{Username: "ops", Password: password}
	o.Checks = fixed(server.Check{Name: "store", Func: func(context.Context) error {
		return errors.New("no hosts at 10.1.1.1")
	}})
	return o
}

func TestThePasswordProtectsAllButTheProbes(t *testing.T) {
	o := withAuth()
	o.Pprof = true
	url := start(t, o)
	as := func(name, secret string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth(name, secret) }
	}
	nobody := func(*http.Request) {}
	for _, c := range []struct {
		who    string
		change func(*http.Request)
		status int
	}{
		{"nobody", nobody, 401},
		{"the user", as("ops", password), 200},
		{"a wrong password", as("ops", password+"x"), 401},
		{"the beginning of the password", as("ops", password[:8]), 401},
		{"no password", as("ops", ""), 401},
		{"another name", as("root", password), 401},
		{"a token", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+password) },
			401},
	} {
		for _, path := range []string{"/", "/api/status", "/api/config", "/metrics",
			"/assets/status.js", "/debug/pprof/cmdline"} {
			answer, body := ask(t, "GET", url+path, "", c.change)
			if answer.StatusCode != c.status || c.status == 401 &&
				(answer.Header.Get("WWW-Authenticate") == "" || strings.Contains(body, "orders")) {
				t.Errorf("%s, %s: got %d, want %d", path, c.who, answer.StatusCode, c.status)
			}
		}
		if answer, _ := ask(
			t, "POST", url+"/api/lookup", "id=a", c.change,
		); answer.StatusCode != c.status {
			t.Errorf("look-up, %s: got %d, want %d", c.who, answer.StatusCode, c.status)
		}
	}
}

// Probes must work without a password, but tell strangers nothing about the inside.
func TestProbesWithoutPasswordSeeNoErrors(t *testing.T) {
	url := start(t, withAuth())
	if status, body := get(t, url+"/healthz"); status != 200 || body != "ok\n" {
		t.Errorf("/healthz: got %d %q", status, body)
	}
	if status, body := get(t, url+"/readyz"); status != 503 || body != "not ready\n" {
		t.Errorf("/readyz: got %d %q", status, body)
	}
	answer, body := ask(t, "GET", url+"/readyz", "", func(r *http.Request) {
		r.SetBasicAuth("ops", password)
	})
	if answer.StatusCode != 503 || body != "store: no hosts at 10.1.1.1\n" {
		t.Errorf("/readyz with password: got %d %q", answer.StatusCode, body)
	}
}

func TestPagesOfOtherSitesCannotLookUp(t *testing.T) {
	url := start(t, options())
	for _, c := range []struct {
		header, value string
		status        int
	}{
		{"Sec-Fetch-Site", "same-origin", 200},
		{"Sec-Fetch-Site", "cross-site", 403},
		{"Sec-Fetch-Site", "same-site", 403},
		{"Origin", "https://evil.example", 403},
		{"Origin", url, 200},
	} {
		answer, _ := ask(t, "POST", url+"/lookup", "id=a", func(r *http.Request) {
			r.Header.Set(c.header, c.value)
		})
		if answer.StatusCode != c.status {
			t.Errorf("%s: %s: got %d, want %d", c.header, c.value, answer.StatusCode, c.status)
		}
	}
}

func TestOnlyWhoIsKnownOrOnThisMachineChangesClaims(t *testing.T) {
	password := func(r *http.Request) { r.SetBasicAuth("ops", password) }
	for _, c := range []struct {
		name   string
		listen string
		hosts  []string
		auth   bool
		asked  func(*http.Request)
		status int
	}{
		{"on this machine", "127.0.0.1:0", nil, false, nil, 200},
		{"for all machines", "0.0.0.0:0", nil, false, nil, 403},
		{"behind a proxy", "127.0.0.1:0", []string{"status.example"}, false, nil, 403},
		{"for all machines, with a password", "0.0.0.0:0", nil, true, password, 200},
		{"for all machines, without the password", "0.0.0.0:0", nil, true, nil, 401},
		{"on this machine, from a page of another site", "127.0.0.1:0", nil, false,
			func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options()
			if c.auth {
				o = withAuth()
			}
			o.Listen, o.Hosts = c.listen, c.hosts
			var change []func(*http.Request)
			if c.asked != nil {
				change = append(change, c.asked)
			}
			url := start(t, o)
			for _, path := range []string{"release", "claim"} {
				answer, body := ask(t, "POST", url+"/api/"+path, "id=a", change...)
				if answer.StatusCode != c.status {
					t.Errorf("%s: got %d, want %d: %s", path, answer.StatusCode, c.status, body)
				}
				if want := `{"said":"` + path + ` a of orders"}`; c.status == 200 &&
					strings.TrimSpace(body) != want {
					t.Errorf("got %s, want %s", body, want)
				}
			}
		})
	}
}

func TestWhoeverTriesPasswordsIsLoggedButDoesNotFloodTheLog(t *testing.T) {
	var log bytes.Buffer
	o := withAuth()
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	url := start(t, o)
	ask(t, "GET", url+"/", "")
	for range 20 {
		ask(t, "GET", url+"/", "", func(r *http.Request) {
			r.SetBasicAuth("ops", "guessed-"+password)
		})
	}
	if n := strings.Count(log.String(), "wrong name or password"); n != 1 ||
		strings.Contains(log.String(), "guessed") {
		t.Errorf("logged %d times:\n%s", n, log.String())
	}
}

func TestAnOpenPageIsWarnedAbout(t *testing.T) {
	auth := server.Auth{Username: "ops", Password: password}
	for _, c := range []struct {
		listen string
		auth   server.Auth
		want   string
	}{
		{"127.0.0.1:0", server.Auth{}, ""},
		{"127.0.0.1:0", auth, ""},
		{"0.0.0.0:0", server.Auth{}, "open to everybody"},
		{"0.0.0.0:0", auth, "crosses the network unencrypted"},
	} {
		var log bytes.Buffer
		o := options()
		o.Listen, o.Auth, o.Logger = c.listen, c.auth, slog.New(slog.NewTextHandler(&log, nil))
		s, err := server.New(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if got := log.String(); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s, password %v: logged %q, want %q", c.listen, c.auth.Username != "", got,
				c.want)
		}
	}
}

// Whatever text a secret gets into, it does not leave the server.
func TestSecretsInForeignTextsAreHidden(t *testing.T) {
	const secret = "s3cr3t-from-elsewhere"
	o := options()
	o.Secrets = []string{secret, "x"} // the short one would change every text
	o.Source = &process{text: " " + secret, err: errors.New("no access with " + secret)}
	o.Checks = fixed(server.Check{Name: server.StoreCheck, Func: func(context.Context) error {
		return errors.New("login as " + secret)
	}})
	url := start(t, o)
	for _, path := range []string{"/", "/api/status", "/api/config", "/readyz", "/metrics"} {
		if _, body := get(t, url+path); strings.Contains(body, secret) {
			t.Errorf("%s shows a secret", path)
		}
	}
	for _, path := range []string{"/lookup", "/api/lookup"} {
		if _, body := ask(t, "POST", url+path, "id=a"); strings.Contains(body, secret) ||
			!strings.Contains(body, "no access with [hidden]") {
			t.Errorf("%s: %s", path, body)
		}
	}
}
