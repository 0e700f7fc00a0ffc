package registry_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/dedup/messageid"
	"github.com/kdedup/kdedup/dedup/messageid/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answers of a server by path; a status stands before the body.
func serve(t *testing.T, answers map[string]string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, known := answers[r.URL.Path]
		if !known {
			answer = `404 {"error_code":40403,"message":"Schema not found"}`
		}
		var status int
		if n, _ := fmt.Sscanf(answer, "%d ", &status); n == 1 {
			w.WriteHeader(status)
			answer = answer[4:]
		}
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(server.Close)
	return server
}

func client(t *testing.T, o registry.Options) *registry.Client {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Second
	}
	c, err := registry.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestASchemaComesWithAllItRefersTo(t *testing.T) {
	c := client(t, registry.Options{URLs: []string{serve(t, map[string]string{
		"/schemas/ids/7": `{"schema":"main","schemaType":"PROTOBUF","references":[
			{"name":"a","subject":"A","version":1},{"name":"b","subject":"B","version":2}]}`,
		"/subjects/A/versions/1": `{"schema":"text a","references":[
			{"name":"c","subject":"C","version":3}]}`,
		"/subjects/B/versions/2": `{"schema":"text b","references":[
			{"name":"c","subject":"C","version":3}]}`,
		"/subjects/C/versions/3": `{"schema":"text c"}`,
	}).URL}})
	got, err := c.Schema(t.Context(), 7)
	want := messageid.Schema{Type: "protobuf", Text: "main", References: []messageid.Reference{
		{Name: "c", Text: "text c"}, {Name: "a", Text: "text a"}, {Name: "b", Text: "text b"}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// Only the registry's own word makes a schema unknown: what a wrong address or a proxy says is an
// outage, or records would become dead letters.
func TestWhatIsNoAnswerOfARegistryIsAnOutage(t *testing.T) {
	const path = "/schemas/ids/1"
	for answer, want := range map[string]string{
		`404 {"error_code":40403,"message":"Schema not found"}`: "",
		`404 <html>not found</html>`:                            "correct schema_registry.urls",
		`404 {"error_code":404,"message":"HTTP 404 Not Found"}`: "correct schema_registry.urls",
		`401 {"error_code":401,"message":"Unauthorized"}`:       "schema_registry.username",
		`403 {}`:                            "allow this user",
		`500 {"error_code":50001}`:          "500 Internal Server Error",
		`429 `:                              "429 Too Many Requests",
		`{"schema":`:                        "decode",
		strings.Repeat("x", 9<<20):          "too large",
		`307 elsewhere, without a Location`: "307",
	} {
		server := serve(t, map[string]string{path: answer})
		c := client(t, registry.Options{URLs: []string{server.URL}})
		_, err := c.Schema(t.Context(), 1)
		unknown := errors.Is(err, messageid.ErrUnknownSchema)
		if unknown != (want == "") || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%.60s: %v", answer, err)
		}
		if (c.Err() == nil) != unknown {
			t.Errorf("%.60s: the last answer is %v", answer, c.Err())
		}
	}
}

func TestTheNextServerAnswersForOneThatDoesNot(t *testing.T) {
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	ill := serve(t, map[string]string{"/schemas/ids/1": "503 "})
	well := serve(t, map[string]string{"/schemas/ids/1": `{"schema":"\"long\""}`})
	c := client(t, registry.Options{URLs: []string{down.URL, ill.URL, well.URL}})
	got, err := c.Schema(t.Context(), 1)
	if err != nil || got.Text != `"long"` || got.Type != "avro" || c.Err() != nil {
		t.Errorf("%v, %v, %v", got, err, c.Err())
	}
}

func TestReadinessComesBackWithTheRegistry(t *testing.T) {
	answers := map[string]string{"/schemas/ids/1": "503 ", "/schemas/ids/0": "503 "}
	c := client(t, registry.Options{URLs: []string{serve(t, answers).URL}})
	if err := c.Ready(t.Context()); err != nil {
		t.Errorf("nobody has asked yet: %v", err)
	}
	if _, err := c.Schema(t.Context(), 1); err == nil || c.Ready(t.Context()) == nil {
		t.Errorf("%v, and then it is ready", err)
	}
	delete(answers, "/schemas/ids/0")
	if err := c.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAReferenceThatIsGoneMakesASchemaUnknown(t *testing.T) {
	c := client(t, registry.Options{URLs: []string{serve(t, map[string]string{
		"/schemas/ids/1":         `{"schema":"x","references":[{"name":"a","subject":"A","version":1}]}`,
		"/subjects/A/versions/1": `404 {"error_code":40402,"message":"Version not found"}`,
	}).URL}})
	if _, err := c.Schema(t.Context(), 1); !errors.Is(err, messageid.ErrUnknownSchema) {
		t.Error(err)
	}
}

func TestTheLoginIsSentAndNotShown(t *testing.T) {
	seen := make(chan string, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Get("Authorization")
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	for want, o := range map[string]registry.Options{
		"Basic a2RlZHVwOnNlc2FtZQ==": {Username: "kdedup", Password: "sesame"},
		"Bearer sesame":              {Token: "sesame"},
	} {
		o.URLs = []string{server.URL}
		_, err := client(t, o).Schema(t.Context(), 1)
		if got := <-seen; got != want || strings.Contains(err.Error(), "sesame") {
			t.Errorf("sent %q, %v", got, err)
		}
	}
}

func TestASlowRegistryIsNotWaitedForAlone(t *testing.T) {
	begun := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
	}))
	t.Cleanup(slow.Close)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		cancel()
	}()
	c := client(t, registry.Options{URLs: []string{slow.URL}, Timeout: time.Hour})
	if _, err := c.Schema(ctx, 1); !errors.Is(err, context.Canceled) || c.Err() != nil {
		t.Errorf("%v, and the registry is said to be ill: %v", err, c.Err())
	}
}

func TestACertificateIsShownAndTheServersChecked(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			if len(r.TLS.PeerCertificates) != 1 {
				w.WriteHeader(http.StatusUnauthorized)
			}
			fmt.Fprint(w, `{"schema":"\"long\""}`)
		}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	trusted := x509.NewCertPool()
	trusted.AddCert(server.Certificate())
	for _, c := range []struct {
		name string
		tls  *tls.Config
		want string
	}{
		{"both", &tls.Config{RootCAs: trusted, Certificates: server.TLS.Certificates}, ""},
		{"no certificate", &tls.Config{RootCAs: trusted}, "certificate required"},
		{"an unknown server", &tls.Config{Certificates: server.TLS.Certificates},
			"unknown authority"},
	} {
		_, err := client(t, registry.Options{URLs: []string{server.URL},
			TLS: func() *tls.Config { return c.tls }}).Schema(t.Context(), 1)
		if (err == nil) != (c.want == "") || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// rotating gives tokens out, a new one after one was refused.
type rotating struct {
	given int
	err   error
}

func (r *rotating) Token(context.Context) (string, error) {
	return fmt.Sprint("token-", r.given), r.err
}

func (r *rotating) Refused(token string) {
	if token == fmt.Sprint("token-", r.given) {
		r.given++
	}
}

func TestATokenThatIsRefusedIsReplaced(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Authorization")+" "+r.Header.Get("Target-Sr-Cluster"))
		if r.Header.Get("Authorization") != "Bearer token-1" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, `{"schema":"text"}`)
	}))
	defer server.Close()
	tokens := new(rotating)
	c := client(t, registry.Options{URLs: []string{server.URL}, Tokens: tokens,
		Headers: http.Header{"Target-Sr-Cluster": {"lsrc-1"}}})
	_, err := c.Schema(t.Context(), 1)
	if err == nil || errors.Is(err, messageid.ErrUnknownSchema) {
		t.Fatalf("a token that is refused: %v", err)
	}
	if s, err := c.Schema(t.Context(), 1); err != nil || s.Text != "text" {
		t.Fatalf("with the next token: %+v, %v", s, err)
	}
	want := []string{"Bearer token-0 lsrc-1", "Bearer token-1 lsrc-1"}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Error(diff)
	}
	tokens.err = errors.New("schema_registry.oauth.token_url: the endpoint answered 503")
	if _, err := c.Schema(t.Context(), 2); !errors.Is(err, tokens.err) ||
		errors.Is(err, messageid.ErrUnknownSchema) || !errors.Is(c.Err(), tokens.err) {
		t.Errorf("without a token: %v, and the check has %v", err, c.Err())
	}
}

// Confluent's registry answers GET /schemas/guids/{guid} from version 8.0 on. Another one's 404
// says nothing about the schema.
func TestASchemaIsFoundByItsGUID(t *testing.T) {
	const path = "/schemas/guids/226abe10-610e-4e82-afd7-49da3e522a0e"
	guid := messageid.GUIDRef([16]byte{0x22, 0x6a, 0xbe, 0x10, 0x61, 0x0e, 0x4e, 0x82, 0xaf, 0xd7,
		0x49, 0xda, 0x3e, 0x52, 0x2a, 0x0e})
	for answer, want := range map[string]string{
		`{"schema":"text","schemaType":"PROTOBUF"}`:      "",
		`404 {"error_code":40403,"message":"not found"}`: "unknown",
		`404 {"error_code":404,"message":"HTTP 404"}`:    "Confluent's is from version 8.0 on",
		`404 <html>`: "Confluent's is from version 8.0 on",
		`500 {"error_code":50001,"message":"not me"}`: "500",
	} {
		server := serve(t, map[string]string{path: answer})
		c := client(t, registry.Options{URLs: []string{server.URL}})
		got, err := c.SchemaOf(t.Context(), guid)
		unknown := errors.Is(err, messageid.ErrUnknownSchema)
		switch {
		case want == "" && (err != nil || got.Text != "text" || got.Type != "protobuf"),
			want == "unknown" && !unknown,
			want != "" && want != "unknown" && (err == nil || unknown ||
				!strings.Contains(err.Error(), want)):
			t.Errorf("%s: %+v, %v", answer, got, err)
		}
	}
	c := client(t, registry.Options{URLs: []string{serve(t, nil).URL}})
	for _, kind := range []messageid.RefKind{messageid.RefContentID, messageid.RefGlobalID,
		messageid.RefFingerprint} {
		if _, err := c.SchemaOf(t.Context(), messageid.NumberRef(kind, 1)); !errors.Is(err,
			messageid.ErrUnknownSchema) {
			t.Errorf("kind %d: %v", kind, err)
		}
	}
}

// One number is the name of another schema in each space of numbers: to ask in the wrong one reads
// records by a schema that is not theirs, and nobody is told.
func TestANumberIsAskedForInItsOwnSpace(t *testing.T) {
	record := func(name string) string {
		return `{"type":"record","name":"` + name + `","fields":[]}`
	}
	byID := `{"schema":` + strconv.Quote(record("ID")) + `}`
	server := serve(t, map[string]string{
		"/schemas/ids/7":                                byID,
		"/apis/registry/v3/ids/contentIds/7":            record("Content"),
		"/apis/registry/v3/ids/contentIds/7/references": "[]",
		"/apis/registry/v3/ids/globalIds/7":             record("Global"),
		"/apis/registry/v3/ids/globalIds/7/references":  "[]",
	})
	set := write(t, "shop.binpb", edition2024(t))
	for _, row := range []struct {
		kind  string
		ref   messageid.RefKind
		files []string
		want  string // empty: unknown
	}{
		{"", messageid.RefID, nil, record("ID")},
		{"", messageid.RefContentID, nil, ""},
		{"", messageid.RefGlobalID, nil, ""},
		{registry.Apicurio, messageid.RefContentID, nil, record("Content")},
		{registry.Apicurio, messageid.RefGlobalID, nil, record("Global")},
		{"", messageid.RefFingerprint, []string{"7=" + set}, ""},
		{registry.Files, messageid.RefID, []string{set}, ""},
	} {
		c := client(t, registry.Options{Type: row.kind, URLs: []string{server.URL},
			Schemas: row.files})
		got, err := c.SchemaOf(t.Context(), messageid.NumberRef(row.ref, 7))
		if got.Text != row.want || errors.Is(err, messageid.ErrUnknownSchema) != (row.want == "") {
			t.Errorf("%s, kind %d: %+v, %v", row.kind, row.ref, got, err)
		}
	}
}
