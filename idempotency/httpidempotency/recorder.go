package httpidempotency

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
)

// recorder is the handler's http.ResponseWriter. It holds the response back, until it is larger
// than the limit.
type recorder struct {
	client  http.ResponseWriter
	limit   int
	outer   http.Header // what was set before the handler ran
	header  http.Header // the handler's
	frozen  http.Header // that as it was when the handler wrote the status
	status  int
	body    []byte
	through bool // the response went to the client
}

func newRecorder(client http.ResponseWriter, limit int) *recorder {
	outer := client.Header().Clone()
	if outer == nil {
		outer = make(http.Header)
	}
	return &recorder{client: client, limit: limit, outer: outer, header: outer.Clone()}
}

// Header implements http.ResponseWriter.
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) {
	if status < 100 || status > 999 {
		// as net/http does, but before it is recorded
		panic(fmt.Sprintf("invalid WriteHeader code %d", status))
	}
	if r.status == 0 && status >= 200 {
		// later changes do not count; trailers are not supported
		r.status, r.frozen = status, r.header.Clone()
	}
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	if r.through {
		return r.client.Write(p)
	}
	if len(r.body)+len(p) <= r.limit {
		r.body = append(r.body, p...)
		return len(p), nil
	}
	r.through = true
	r.send()
	return r.client.Write(p)
}

// send gives the client what is held back, with all its headers.
func (r *recorder) send() {
	r.WriteHeader(http.StatusOK)
	header := r.client.Header()
	clear(header)
	maps.Copy(header, r.frozen)
	r.client.WriteHeader(r.status)
	if len(r.body) > 0 {
		_, _ = r.client.Write(r.body) // a client that is gone asks again
	}
	r.body = nil
}

// response is what is recorded.
func (r *recorder) response(drop map[string]bool) *response {
	r.WriteHeader(http.StatusOK)
	kept := make(http.Header)
	hop := hopByHop(r.frozen)
	for name, values := range r.frozen {
		if !drop[name] && !hop[name] && !slices.Equal(values, r.outer[name]) {
			kept[name] = values
		}
	}
	return &response{Status: r.status, Header: kept, Body: r.body, Kept: !r.through}
}
