package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"

	kdedupv1 "github.com/kdedup/kdedup/api/kdedup/v1"
	"github.com/kdedup/kdedup/api/kdedup/v1/kdedupv1connect"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/certs"
	"github.com/kdedup/kdedup/internal/testkit"
)

// bearer sends a token.
func bearer(token string) connect.ClientOption {
	return connect.WithInterceptors(connect.UnaryInterceptorFunc(
		func(next connect.UnaryFunc) connect.UnaryFunc {
			return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
				r.Header().Set("Authorization", "Bearer "+token)
				return next(ctx, r)
			}
		}))
}

func TestACallerOfOneScopeCannotSeeOrChangeAnother(t *testing.T) {
	server, store := inMemory(t, Options{Callers: []Caller{
		{Name: "shipping", Token: "token of shipping", Scopes: []string{"orders"}},
		{Name: "billing", Token: "token of billing", Scopes: []string{"payments"}},
	}}, "orders", "payments")
	for name, options := range protocols {
		shipping := clientOf(t, server, append(options, bearer("token of shipping"))...)
		id := "secret-" + name
		if _, err := store.Claim(t.Context(), scopeNamed("payments"),
			[]dedup.Claim{{ID: dedup.ID(id), Owner: byHand}}); err != nil {
			t.Fatal(err)
		}
		for _, scope := range []string{"payments", "nothing"} {
			_, judged := shipping.Judge(t.Context(), connect.NewRequest(&kdedupv1.JudgeRequest{
				Scope: scope, Messages: []*kdedupv1.Message{{Id: id, Place: at(0)}}}))
			_, seen := shipping.Lookup(t.Context(),
				connect.NewRequest(&kdedupv1.LookupRequest{Scope: scope, Id: id}))
			_, released := shipping.Release(t.Context(),
				connect.NewRequest(&kdedupv1.ReleaseRequest{Scope: scope, Id: id}))
			for method, err := range map[string]error{"judge": judged, "look up": seen,
				"release": released} {
				// it does not learn whether there is such a scope
				want := fmt.Sprintf("scope: %q is none of the scopes that this caller may use",
					scope)
				if connect.CodeOf(err) != connect.CodePermissionDenied || messageOf(err) != want {
					t.Errorf("%s: %s in %s: %v", name, method, scope, err)
				}
			}
		}
		answer, err := store.Lookup(t.Context(), scopeNamed("payments"), dedup.ID(id))
		if err != nil || answer.Owner != byHand {
			t.Errorf("%s: the claim of the other scope is now %+v, %v", name, answer, err)
		}
		wantVerdicts(t, judgeAll(t, shipping, &kdedupv1.Message{Id: id, Place: at(0)}), "FIRST")
	}
}

func TestStrangersAreRefused(t *testing.T) {
	server, _ := inMemory(t, Options{Callers: []Caller{
		{Name: "shipping", Token: "token of shipping", Scopes: []string{"orders"}}}}, "orders")
	for _, token := range []string{"", "token of shippinG", "token of", "another"} {
		for name, options := range protocols {
			_, err := clientOf(t, server, append(options, bearer(token))...).Judge(t.Context(),
				connect.NewRequest(of(&kdedupv1.Message{Id: "a", Place: at(0)})))
			if connect.CodeOf(err) != connect.CodeUnauthenticated {
				t.Errorf("%s, token %q: %v", name, token, err)
			}
		}
	}
	for _, path := range []string{
		"/kdedup.v1.ClaimService/Judge", "/", "/metrics",
		"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
	} {
		if status, _ := post(t, http.DefaultClient, server.URL()+path, `{}`); status !=
			http.StatusUnauthorized {
			t.Errorf("%s: status %d", path, status)
		}
	}
}

func post(t *testing.T, client *http.Client, url, body string) (status int, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url,
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	defer client.CloseIdleConnections()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func TestAPlainHTTPClientMayJudge(t *testing.T) {
	server, _ := inMemory(t, Options{}, "orders")
	for _, want := range []string{"FIRST", "MINE"} {
		status, answer := post(t, http.DefaultClient,
			server.URL()+"/kdedup.v1.ClaimService/Judge",
			`{"scope": "orders", "messages": [{"id": "a", "place":
			  {"record": {"topic": "orders", "partition": 3, "offset": 812}}}]}`)
		if status != http.StatusOK || !strings.Contains(answer, "VERDICT_"+want) {
			t.Errorf("%d %s, want %s", status, answer, want)
		}
	}
}

// overTLS serves an authority's callers.
func overTLS(t *testing.T, a *testkit.Authority, callers ...Caller) *Server {
	t.Helper()
	dir := t.TempDir()
	files := certs.ServerFiles{ClientCAFile: filepath.Join(dir, "ca.pem")}
	files.CertFile, files.KeyFile = a.Write(dir, testkit.Leaf{})
	if err := os.WriteFile(files.ClientCAFile, a.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	server, _ := inMemory(t, Options{TLS: files, Callers: callers}, "orders")
	return server
}

func secureClient(
	t *testing.T, trusts *testkit.Authority, s *Server, own *tls.Certificate,
	options ...connect.ClientOption,
) kdedupv1connect.ClaimServiceClient {
	config := &tls.Config{RootCAs: trusts.Pool()}
	if own != nil {
		config.Certificates = []tls.Certificate{*own}
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return kdedupv1connect.NewClaimServiceClient(&http.Client{Transport: transport}, s.URL(),
		append(options, connect.WithGRPC())...)
}

func issue(t *testing.T, a *testkit.Authority, name string) *tls.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(a.Issue(testkit.Leaf{Name: name}))
	if err != nil {
		t.Fatal(err)
	}
	return &pair
}

func TestACallerIsKnownByItsCertificate(t *testing.T) {
	a, foreign := testkit.NewAuthority(t), testkit.NewAuthority(t)
	server := overTLS(t, a,
		Caller{Name: "shipping", Certificate: "shipping", Scopes: []string{"orders"}},
		Caller{Name: "both", Certificate: "both", Token: "and a token", Scopes: []string{"orders"}})
	message := of(&kdedupv1.Message{Id: "a", Place: at(0)})
	for _, row := range []struct {
		name    string
		own     *tls.Certificate
		options []connect.ClientOption
		known   bool
	}{
		{"its certificate", issue(t, a, "shipping"), nil, true},
		{"another name", issue(t, a, "billing"), nil, false},
		{"no certificate", nil, nil, false},
		{"one of two proofs", issue(t, a, "both"), nil, false},
		{"the other of two proofs", nil, []connect.ClientOption{bearer("and a token")}, false},
		{"both proofs", issue(t, a, "both"), []connect.ClientOption{bearer("and a token")}, true},
	} {
		_, err := secureClient(t, a, server, row.own, row.options...).Judge(t.Context(),
			connect.NewRequest(message))
		if known := err == nil; known != row.known ||
			!known && connect.CodeOf(err) != connect.CodeUnauthenticated {
			t.Errorf("%s: %v", row.name, err)
		}
	}
	_, err := secureClient(t, a, server, issue(t, foreign, "shipping")).Judge(t.Context(),
		connect.NewRequest(message))
	if err == nil {
		t.Error("a certificate of a foreign authority was believed")
	}
}

func TestOtherMachinesNeedEncryptionAndCallers(t *testing.T) {
	a := testkit.NewAuthority(t)
	cert, key := a.Write(t.TempDir(), testkit.Leaf{})
	callers := []Caller{{Name: "shipping", Token: "token", Scopes: []string{"orders"}}}
	for name, o := range map[string]Options{
		"neither":    {},
		"no callers": {TLS: certs.ServerFiles{CertFile: cert, KeyFile: key}},
		"no TLS":     {Callers: callers},
	} {
		o.Listen, o.Logger = "0.0.0.0:0", quiet()
		o.Metrics = NewMetrics(prometheus.NewRegistry())
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), "api.listen") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestForeignPagesAreRefused(t *testing.T) {
	server, _ := inMemory(t, Options{}, "orders")
	for name, change := range map[string]func(*http.Request){
		"a foreign name":   func(r *http.Request) { r.Host = "attacker.example" },
		"a foreign origin": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			server.URL()+"/kdedup.v1.ClaimService/Release",
			bytes.NewReader([]byte(`{"scope": "orders", "id": "a"}`)))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		change(request)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode < 400 {
			t.Errorf("%s: status %d", name, response.StatusCode)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// held is a store that answers when it is let go.
type held struct {
	dedup.Store
	came, leave chan struct{}
}

func (h held) Claim(
	ctx context.Context, scope dedup.Scope, claims []dedup.Claim,
) ([]dedup.Answer, error) {
	h.came <- struct{}{}
	<-h.leave
	answers := make([]dedup.Answer, len(claims))
	for i, c := range claims {
		answers[i] = dedup.Answer{Outcome: dedup.Applied, Owner: c.Owner}
	}
	return answers, nil
}

func TestMoreRequestsThanMayBeUnderWayAreRefusedAtOnce(t *testing.T) {
	store := held{came: make(chan struct{}), leave: make(chan struct{})}
	o := Options{Store: store, Limits: testLimits}
	o.Limits.Requests = 2
	server, _ := inMemory(t, o, "orders")
	client := clientOf(t, server)
	ask := func() error {
		_, err := client.Judge(t.Context(),
			connect.NewRequest(of(&kdedupv1.Message{Id: "a", Place: at(0)})))
		return err
	}
	var waiting sync.WaitGroup
	for range o.Limits.Requests {
		waiting.Go(func() {
			if err := ask(); err != nil {
				t.Error(err)
			}
		})
		<-store.came
	}
	if err := ask(); connect.CodeOf(err) != connect.CodeResourceExhausted {
		t.Errorf("one too many: %v", err)
	}
	close(store.leave)
	waiting.Wait()
}

func TestProbesNeedNoCredentialsAndLearnNothing(t *testing.T) {
	ready := errors.New("store of 10.0.0.7 is down")
	server, _ := inMemory(t, Options{
		Callers: []Caller{{Name: "shipping", Token: "token", Scopes: []string{"orders"}}},
		Ready:   func(context.Context) error { return ready },
	}, "orders")
	for path, want := range map[string]string{"/healthz": "200 ok", "/readyz": "503 not ready"} {
		response, err := http.Get(server.URL() + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		got := fmt.Sprintf("%d %s", response.StatusCode, strings.TrimSpace(string(body)))
		if got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	status, answer := post(t, http.DefaultClient,
		server.URL()+"/grpc.health.v1.Health/Check", `{"service": "kdedup.v1.ClaimService"}`)
	if status != http.StatusOK || !strings.Contains(answer, "NOT_SERVING") {
		t.Errorf("gRPC health: %d %s", status, answer)
	}
}
