package e2e_test

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kdedup/kdedup/internal/testkit"
)

// tokenLife is how long a token is good. Brokers end its sessions with it.
const tokenLife = 10 * time.Second

// tokenEndpoint gives out tokens for the owner.
type tokenEndpoint struct {
	url    string
	secret string
	began  time.Time

	mu     sync.Mutex
	tokens []string
	down   bool
}

func startTokenEndpoint(t *testing.T, s *secured) *tokenEndpoint {
	t.Helper()
	e := &tokenEndpoint{secret: password("client"), began: time.Now()}
	server := httptest.NewUnstartedServer(e)
	pair, err := tls.X509KeyPair(s.authority.Issue(testkit.Leaf{}))
	if err != nil {
		t.Fatal(err)
	}
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	server.StartTLS()
	t.Cleanup(server.Close)
	e.url = server.URL + "/token"
	return e
}

// settings is the configuration of kafka with the endpoint.
func (e *tokenEndpoint) settings(s *secured, secret string) string {
	return fmt.Sprintf(
		"{brokers: [%q], tls: {enabled: true, ca_file: %q}, sasl: {mechanism: oauthbearer, "+
			"oauth: {token_url: %q, client_id: kdedup, client_secret: %q, scopes: [kafka], "+
			"ca_file: %q}}}",
		s.kafka.Listener(tokenListener).Listen, s.file("ca.pem"), e.url, secret, s.file("ca.pem"))
}

func (e *tokenEndpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	id, secret, _ := r.BasicAuth()
	if e.down || r.FormValue("grant_type") != "client_credentials" || id != "kdedup" ||
		secret != e.secret {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error": "invalid_client", "error_description": "not with %s"}`, secret)
		return
	}
	now := time.Now()
	part := func(json string) string { return base64.RawURLEncoding.EncodeToString([]byte(json)) }
	token := part(`{"alg": "none"}`) + "." +
		part(fmt.Sprintf(`{"sub": %q, "iat": %d, "exp": %d, "scope": ["kafka"], "jti": "%d"}`,
			owner, now.Add(-time.Minute).Unix(), now.Add(tokenLife+time.Second).Unix(),
			now.UnixNano())) + "."
	e.tokens = append(e.tokens, token)
	fmt.Fprintf(w, `{"access_token": %q, "token_type": "bearer", "expires_in": %d}`, token,
		int(tokenLife.Seconds()))
}

// given is how many tokens it gave out.
func (e *tokenEndpoint) given() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.tokens)
}

// secrets are the client's secret and the tokens.
func (e *tokenEndpoint) secrets() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	secrets := []string{e.secret}
	for _, token := range e.tokens {
		secrets = append(secrets, strings.Split(token, ".")[1])
	}
	return slices.Clone(secrets)
}

func (e *tokenEndpoint) fail(down bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.down = down
}
