package kafka

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/sasl"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/internal/certs"
	"github.com/kdedup/kdedup/internal/testkit"
)

// endpoint is a token endpoint that numbers its tokens.
type endpoint struct {
	settings config.OAuth

	mu      sync.Mutex
	asked   int
	forms   []string // of the requests
	expires int      // seconds; 0 leaves it out
	status  int
}

const clientSecret = "client-secret-8f2a"

func startEndpoint(t *testing.T, expires int) *endpoint {
	t.Helper()
	e := &endpoint{expires: expires, status: http.StatusOK}
	authority := testkit.NewAuthority(t)
	server := httptest.NewUnstartedServer(e)
	pair, err := tls.X509KeyPair(authority.Issue(testkit.Leaf{}))
	if err != nil {
		t.Fatal(err)
	}
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, authority.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	e.settings = config.OAuth{
		TokenURL: server.URL + "/token", ClientID: "kdedup", ClientSecret: clientSecret, CAFile: ca,
		Scopes: []string{"read", "write"}, Audience: "brokers",
		Extensions: []string{"logicalCluster=lkc-1"},
	}
	return e
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	_ = r.ParseForm()
	e.forms = append(e.forms, r.Form.Encode())
	w.Header().Set("Content-Type", "application/json")
	if user, secret, _ := r.BasicAuth(); e.status != http.StatusOK || user != "kdedup" ||
		secret != clientSecret {
		w.WriteHeader(max(e.status, http.StatusUnauthorized))
		fmt.Fprintf(w, `{"error": "invalid_client", "error_description": "no %s"}`, secret)
		return
	}
	e.asked++
	expiry := ""
	if e.expires > 0 {
		expiry = fmt.Sprintf(`, "expires_in": %d`, e.expires)
	}
	fmt.Fprintf(w, `{"access_token": "token-%d", "token_type": "bearer"%s}`, e.asked, expiry)
}

func (e *endpoint) set(status int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.status = status
}

func (e *endpoint) mechanism(t *testing.T, log *bytes.Buffer) sasl.Mechanism {
	t.Helper()
	m, err := mechanism(t.Context(), "kafka.sasl", config.SASL{Mechanism: config.SASLOAuthBearer,
		OAuth: e.settings}, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// login is what a client sends to a broker first.
func login(t *testing.T, m sasl.Mechanism) (string, error) {
	t.Helper()
	_, first, err := m.Authenticate(t.Context(), "broker:9092")
	return string(first), err
}

func TestAllConnectionsShareOneToken(t *testing.T) {
	e := startEndpoint(t, 3600)
	m := e.mechanism(t, new(bytes.Buffer))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			got, err := login(t, m)
			if want := "n,,\x01auth=Bearer token-1\x01logicalCluster=lkc-1\x01\x01"; err != nil ||
				got != want {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
		})
	}
	wg.Wait()
	if want := "audience=brokers&grant_type=client_credentials&scope=read+write"; len(
		e.forms) != 1 || e.forms[0] != want {
		t.Errorf("the endpoint was asked %q, want once %q", e.forms, want)
	}
}

func TestTheSecretFollowsNoRedirect(t *testing.T) {
	var heard atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		heard.Add(1)
	}))
	t.Cleanup(elsewhere.Close)
	for _, status := range []int{http.StatusFound, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect} {
		here := httptest.NewServer(http.RedirectHandler(elsewhere.URL+"/token?now=1", status))
		t.Cleanup(here.Close)
		source := Tokens{
			settings: clientcredentials.Config{ClientID: "kdedup", ClientSecret: clientSecret,
				TokenURL: here.URL},
			files: noFiles(t), log: slog.New(slog.DiscardHandler),
		}
		_, err := source.Token(t.Context())
		if want := "redirects to " + elsewhere.URL + "/token, which is not followed"; err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%d: got %v, want %s", status, err, want)
		}
	}
	if n := heard.Load(); n != 0 {
		t.Errorf("the other place was asked %d times", n)
	}
}

func noFiles(t *testing.T) *certs.Follower {
	t.Helper()
	files, err := certs.Client("kafka.sasl.oauth", certs.ClientFiles{},
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestATokenIsRenewedBeforeItEnds(t *testing.T) {
	e := startEndpoint(t, 5)
	m := e.mechanism(t, new(bytes.Buffer))
	testkit.Eventually(t, testLimit, "a third token", func() bool {
		got, err := login(t, m)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(got, "token-3")
	})
	if e.asked != 3 {
		t.Errorf("the endpoint was asked %d times", e.asked)
	}
}

func TestATokenOfUnknownLifeIsUsedOnce(t *testing.T) {
	e := startEndpoint(t, 0)
	m := e.mechanism(t, new(bytes.Buffer))
	for n := 1; n <= 2; n++ {
		if got, err := login(t, m); err != nil || !strings.Contains(got, fmt.Sprint("token-", n)) {
			t.Errorf("login %d: %q, %v", n, got, err)
		}
	}
}

// While the endpoint fails, the last token is used to its end; then the error says where to look,
// in one line without the answer's body, in which an endpoint may repeat the secret.
func TestAnEndpointThatFailsIsNamed(t *testing.T) {
	e := startEndpoint(t, 3)
	log := new(bytes.Buffer)
	m := e.mechanism(t, log)
	if _, err := login(t, m); err != nil {
		t.Fatal(err)
	}
	e.set(http.StatusServiceUnavailable)
	var err error
	testkit.Eventually(t, testLimit, "the end of the token", func() bool {
		_, err = login(t, m)
		return err != nil
	})
	want :=
		`kafka.sasl.oauth.token_url: the endpoint answered 503 Service Unavailable: "invalid_client"`
	if err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if !strings.Contains(log.String(), "the old one stays in use") ||
		strings.Contains(log.String(), clientSecret) {
		t.Errorf("logged: %s", log)
	}
	e.set(http.StatusOK)
	if _, err := login(t, m); err != nil {
		t.Errorf("after the endpoint came back: %v", err)
	}
}

func TestTokensThatCannotBeHad(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*config.OAuth)
		want  string
	}{
		"a wrong secret": {func(o *config.OAuth) { o.ClientSecret = "wrong" },
			`the endpoint answered 401 Unauthorized: "invalid_client"`},
		"an unknown authority": {func(o *config.OAuth) { o.CAFile = "" },
			"certificate signed by unknown authority"},
		"nobody at the address": {func(o *config.OAuth) {
			o.TokenURL = "https://127.0.0.1:1/token"
		}, "connection refused"},
	} {
		e := startEndpoint(t, 60)
		c.spoil(&e.settings)
		_, err := login(t, e.mechanism(t, new(bytes.Buffer)))
		if err == nil || !strings.HasPrefix(err.Error(), "kafka.sasl.oauth.token_url: ") ||
			!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}

func TestATokenThatABrokerRefuses(t *testing.T) {
	e := startEndpoint(t, 60)
	session, _, err := e.mechanism(t, new(bytes.Buffer)).Authenticate(
		context.WithoutCancel(t.Context()), "broker:9092")
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = session.Challenge([]byte(`{"status":"invalid_token"}`))
	if refused := new(refusedToken); !errors.As(err, &refused) ||
		!strings.Contains(err.Error(), "invalid_token") {
		t.Errorf("got %v", err)
	}
	if done, _, err := session.Challenge(nil); !done || err != nil {
		t.Errorf("a token that is accepted: %v, %v", done, err)
	}
}

func TestATokenThatIsRefusedIsAskedForAgain(t *testing.T) {
	var given atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"t%d","token_type":"bearer","expires_in":3600}`,
			given.Add(1))
	}))
	t.Cleanup(server.Close)
	source, err := NewTokens("schema_registry.oauth", config.OAuth{TokenURL: server.URL,
		ClientID: "kdedup", ClientSecret: clientSecret}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ refused, want string }{
		{"", "t1"}, {"", "t1"}, {"t1", "t2"}, {"t1", "t2"}, {"t2", "t3"},
	} {
		source.Refused(step.refused)
		if got, err := source.Token(t.Context()); got != step.want || err != nil {
			t.Errorf("after %q was refused: %q, %v, want %s", step.refused, got, err, step.want)
		}
	}
}
