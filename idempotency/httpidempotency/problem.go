package httpidempotency

import (
	"encoding/json"
	"net/http"
)

// problem is the body of an error, by RFC 9457.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// OriginalStatus is that of a response which was not kept.
	OriginalStatus int `json:"original_status,omitempty"`
}

func (p problem) send(w http.ResponseWriter) {
	body, _ := json.Marshal(p) // strings and numbers
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n'))
}

func (m *middleware) problem(status int, title, detail string) problem {
	return problem{Type: m.Docs, Title: title, Status: status, Detail: detail}
}
