package e2e_test

import (
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/kdedup/kdedup/config"
)

// hides searches a text for secrets, as they are and as encoders write them.
func hides(t *testing.T, what, text string, secrets ...string) {
	t.Helper()
	for _, secret := range secrets {
		for _, form := range []string{
			secret, base64.StdEncoding.EncodeToString([]byte(secret)),
			base64.URLEncoding.EncodeToString([]byte(secret)), hex.EncodeToString([]byte(secret)),
		} {
			if at := strings.Index(text, form); at >= 0 {
				t.Errorf("%s shows a secret: …%s…", what,
					text[max(0, at-200):min(len(text), at+100)])
			}
		}
	}
}

// searched is a process with every secret set, whose outputs are searched for all of them.
type searched struct {
	*instance
	status  string // the password of the status page
	secrets []string
}

// watched starts a process that logs everything. The secrets of its logins are in the file; all
// others come from the environment.
func watched(t *testing.T, d *deployment, logins ...string) *searched {
	t.Helper()
	s := &searched{status: password("status"), secrets: logins}
	variables := []string{"KDEDUP_LOG_LEVEL=debug", "KDEDUP_SERVER_AUTH_USERNAME=ops",
		"KDEDUP_SERVER_PPROF=true", "KDEDUP_SCHEMA_REGISTRY_USERNAME=any"}
	for _, path := range secretPaths(reflect.TypeFor[config.Config](), "") {
		secret := password("any")
		switch {
		case strings.HasPrefix(path, "kafka.sasl.") || strings.HasPrefix(path, "store.cassandra."):
			continue // in the file, or refused beside what is there: testTokens sets it
		case strings.HasPrefix(path, "kafka.output."):
			continue // refused without another cluster, which command tests
		case path == "schema_registry.token", strings.HasPrefix(path, "schema_registry.oauth."):
			continue // exclude the password
		case path == "server.auth.password":
			secret = s.status
		}
		s.secrets = append(s.secrets, secret)
		variables = append(variables, config.EnvName(path)+"="+secret)
	}
	s.instance = d.launch(kdedup, "one", variables...)
	return s
}

// secretPaths lists the settings that hold secrets.
func secretPaths(t reflect.Type, path string) (paths []string) {
	for field := range t.Fields() {
		at := strings.TrimPrefix(path+"."+field.Tag.Get("mapstructure"), ".")
		switch {
		case field.Type == reflect.TypeFor[config.Secret]():
			paths = append(paths, at)
		case field.Type.Kind() == reflect.Struct:
			paths = append(paths, secretPaths(field.Type, at)...)
		}
	}
	return paths
}

// search looks at everything that the process has written and serves now.
func (s *searched) search() {
	s.t.Helper()
	log := s.text()
	if !strings.Contains(log, "level=DEBUG") {
		s.t.Error("nothing is logged at debug level")
	}
	hides(s.t, "the log", log, s.secrets...)
	for _, path := range []string{"/", "/api/status", "/api/config", "/metrics", "/healthz",
		"/readyz", "/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=2"} {
		hides(s.t, path, s.fetch(path), s.secrets...)
	}
}

// fetch logs in to the status page.
func (s *searched) fetch(path string) string {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet,
		"http://"+s.address()+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	request.SetBasicAuth("ops", s.status)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK && path != "/readyz" {
		s.t.Errorf("%s: %s, %v", path, answer.Status, err)
	}
	return string(body)
}
