package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// schemaServers are started by the first that needs them.
type schemaServers struct {
	t                 *testing.T // they end with it
	registry, glueAPI *servers.Server
}

func (s *schemaServers) apicurio() *servers.Server {
	if s.registry == nil {
		s.registry = servers.Registry(s.t)
		for _, artifact := range []string{"one", "another"} {
			s.register(artifact)
		}
	}
	return s.registry
}

// register adds an artifact of the same content as all others that it adds. Behind two of them no
// globalId is the contentId of its version.
func (s *schemaServers) register(artifact string) {
	s.t.Helper()
	body := fmt.Sprintf(`{"artifactId":%q,"artifactType":"AVRO","firstVersion":{"content":`+
		`{"content":"\"boolean\"","contentType":"application/json"}}}`, artifact)
	answer, err := http.Post("http://"+s.registry.Addr()+
		"/apis/registry/v3/groups/default/artifacts", "application/json", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		s.t.Fatalf("register %s: %s: %s, %v", artifact, answer.Status, text, err)
	}
}

func (s *schemaServers) glue() *servers.Server {
	if s.glueAPI == nil {
		s.glueAPI = servers.Glue(s.t)
	}
	return s.glueAPI
}

func confluent(_ *testing.T, s *schemaServers) writing {
	at := servers.RegistryURL(s.apicurio())
	return writing{python, at, fmt.Sprintf("urls: [%q]", at)}
}

// confluentAndHeaders are numbers of Confluent's client, in headers of Apicurio's, too.
func confluentAndHeaders(_ *testing.T, s *schemaServers) writing {
	return writing{python, servers.RegistryURL(s.apicurio()),
		fmt.Sprintf("type: apicurio, urls: [%q]", "http://"+s.apicurio().Addr())}
}

func apicurio(more string) func(*testing.T, *schemaServers) writing {
	return func(_ *testing.T, s *schemaServers) writing {
		at := "http://" + s.apicurio().Addr()
		return writing{java, at + "/apis/registry/v3",
			fmt.Sprintf("type: apicurio, urls: [%q]%s", at, more)}
	}
}

func glue(_ *testing.T, s *schemaServers) writing {
	at := "http://" + s.glue().Addr()
	return writing{java, at, fmt.Sprintf("type: glue, urls: [%q], region: eu-central-1", at)}
}

func files(t *testing.T, _ *schemaServers) writing {
	folder := t.TempDir()
	for version := range 2 { // the configuration is read before the program writes them
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("order-%d.avsc", version)),
			[]byte(`"int"`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return writing{java, folder, fmt.Sprintf("type: files, schemas: [%q, %q]",
		filepath.Join(folder, "order-0.avsc"), filepath.Join(folder, "order-1.avsc"))}
}

// azure answers as the manual of Azure's API says, for there is no other server of it than Azure.
func azure(t *testing.T, _ *schemaServers) writing {
	folder := t.TempDir()
	schemas := http.StripPrefix("/$schemaGroups/$schemas/", http.FileServer(http.Dir(folder)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json;serialization=Avro")
		schemas.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return writing{python, folder, fmt.Sprintf("type: azure, urls: [%q]", server.URL)}
}

// guids is an Apicurio Registry behind what gives its schemas GUIDs, as Confluent's registry has
// them from 8.0 on: no registry that has them can be had here.
func guids(t *testing.T, s *schemaServers) writing {
	behind, err := url.Parse(servers.RegistryURL(s.apicurio()))
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			if guid, asks := strings.CutPrefix(r.In.URL.Path, "/schemas/guids/"); asks {
				id, err := strconv.ParseUint(strings.ReplaceAll(guid, "-", ""), 16, 64)
				if err != nil {
					t.Error(err)
				}
				r.Out.URL.Path = fmt.Sprint("/schemas/ids/", id)
			}
			r.SetURL(behind)
			r.Out.Header.Del("Accept-Encoding")
		},
		// a request on a connection that was used before may stay without an answer
		Transport:      &http.Transport{DisableKeepAlives: true},
		ModifyResponse: nameSchemas,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			w.WriteHeader(http.StatusBadGateway) // of a process that was killed
		},
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return writing{python, server.URL, fmt.Sprintf("urls: [%q]", server.URL)}
}

// nameSchemas adds a GUID to an answer with an ID.
func nameSchemas(r *http.Response) error {
	var answer map[string]any
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if err := r.Body.Close(); err != nil {
		return err
	}
	if json.Unmarshal(body, &answer) == nil {
		if id, has := answer["id"].(float64); has {
			answer["guid"] = fmt.Sprintf("00000000-0000-0000-0000-%012x", int64(id))
			if body, err = json.Marshal(answer); err != nil {
				return err
			}
		}
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	r.ContentLength = int64(len(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}
