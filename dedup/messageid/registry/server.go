package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/twmb/franz-go/pkg/sr"
)

// server is one address of a registry. It has what the client of Confluent's API lacks.
type server struct {
	*sr.Client
	url                       string
	http                      *http.Client
	username, password, token string
}

func newServer(url string, o Options, idle http.RoundTripper) (s server, err error) {
	s = server{url: strings.TrimSuffix(url, "/"), username: o.Username, password: o.Password,
		token: o.Token}
	s.http = &http.Client{Timeout: o.Timeout, Transport: trip{idle, o.Tokens, o.Headers},
		CheckRedirect: refuseRedirect}
	opts := []sr.ClientOpt{sr.URLs(url), sr.UserAgent("kdedup"), sr.HTTPClient(s.http)}
	if o.Username != "" {
		opts = append(opts, sr.BasicAuth(o.Username, o.Password))
	}
	if o.Token != "" {
		opts = append(opts, sr.BearerToken(o.Token))
	}
	if s.Client, err = sr.NewClient(opts...); err != nil {
		return s, fmt.Errorf("schema_registry: %w", err)
	}
	return s, nil
}

// get asks for a path of another API than Confluent's. What is no success is an *sr.ResponseError.
func (s server) get(ctx context.Context, path string) ([]byte, http.Header, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		return nil, nil, err
	}
	r.Header.Set("User-Agent", "kdedup")
	switch {
	case s.username != "":
		r.SetBasicAuth(s.username, s.password)
	case s.token != "":
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	answer, err := s.http.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, nil, fmt.Errorf("read the answer of %s: %w", r.URL.Redacted(), err)
	}
	if answer.StatusCode != http.StatusOK {
		return nil, nil, &sr.ResponseError{Method: r.Method, URL: r.URL.String(),
			StatusCode: answer.StatusCode, Raw: body,
			ErrorCode: deniedCode(answer.StatusCode, body)}
	}
	return body, answer.Header, nil
}

// deniedCode makes a denial of Apicurio's or Azure's one of Confluent's. Without its name, somebody
// else answers.
func deniedCode(status int, body []byte) int {
	var problem struct {
		Name  string
		Error struct{ Code string }
	}
	if status == http.StatusNotFound && json.Unmarshal(body, &problem) == nil &&
		(strings.HasSuffix(problem.Name, "NotFoundException") || // of Apicurio
			problem.Error.Code == "ItemNotFound") { // of Azure
		return noSchema
	}
	return 0
}
