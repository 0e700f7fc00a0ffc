package httpidempotency

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// ReplayedHeader is "true" in responses that were recorded earlier.
const ReplayedHeader = "Idempotent-Replayed"

// response is a recorded response.
type response struct {
	Status int         `json:"status"`
	Header http.Header `json:"header"`
	Kept   bool        `json:"kept"` // false: the body was too large
	Body   []byte      `json:"-"`
}

// neverRecorded are headers in the form of http.CanonicalHeaderKey; hop-by-hop ones are in
// hopByHop.
var neverRecorded = []string{"Set-Cookie", "Set-Cookie2", "Date", "Content-Length", ReplayedHeader}

// hopByHop returns the headers of the connection, among them those that Connection names.
func hopByHop(header http.Header) map[string]bool {
	hop := map[string]bool{
		"Connection": true, "Keep-Alive": true, "Proxy-Connection": true,
		"Proxy-Authenticate": true,
		"Te":                 true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
	}
	for _, line := range header.Values("Connection") {
		for name := range strings.SplitSeq(line, ",") {
			hop[http.CanonicalHeaderKey(strings.TrimSpace(name))] = true
		}
	}
	return hop
}

// Recorded responses are: format, length of the JSON in 4 bytes, JSON, body.
const responseFormat = 1

var errResponse = errors.New("recorded response in an unknown format")

// encode leaves out the body when the whole would exceed the limit.
func (r *response) encode(limit int) ([]byte, error) {
	head, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode response: %w", err)
	}
	if r.Kept && 5+len(head)+len(r.Body) > limit {
		without := response{Status: r.Status, Header: r.Header}
		return without.encode(limit)
	}
	data := binary.BigEndian.AppendUint32([]byte{responseFormat}, uint32(len(head)))
	data = append(data, head...)
	if r.Kept {
		data = append(data, r.Body...)
	}
	return data, nil
}

func decodeResponse(data []byte) (*response, error) {
	if len(data) < 5 || data[0] != responseFormat {
		return nil, errResponse
	}
	size, data := uint64(binary.BigEndian.Uint32(data[1:])), data[5:]
	if size > uint64(len(data)) {
		return nil, errResponse
	}
	r := &response{}
	if err := json.Unmarshal(data[:size], r); err != nil {
		return nil, fmt.Errorf("%w: %w", errResponse, err)
	}
	if r.Status < 200 || r.Status > 999 {
		return nil, fmt.Errorf("%w: status %d", errResponse, r.Status)
	}
	r.Body = data[size:]
	return r, nil
}

// replay sends a recorded response.
func (r *response) replay(w http.ResponseWriter) {
	for name, values := range r.Header {
		w.Header()[name] = values
	}
	w.Header().Set(ReplayedHeader, "true")
	if r.Status != http.StatusNoContent && r.Status != http.StatusNotModified {
		w.Header().Set("Content-Length", strconv.Itoa(len(r.Body)))
	}
	w.WriteHeader(r.Status)
	if len(r.Body) > 0 {
		_, _ = w.Write(r.Body) // a client that is gone asks again
	}
}
