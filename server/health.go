package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// checkTimeout bounds one request to /readyz: orchestrators give up after a second or a few.
const checkTimeout = 2 * time.Second

// healthy answers as long as the process can: a store that is down is no reason to restart it.
func healthy(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }

// readiness answers probes, which have no credentials. Only who may read the page sees the errors.
type readiness struct {
	checks     func() []Check
	clean      func(string) string
	mayReadAll func(*http.Request) bool
}

// ServeHTTP shows every check, also those that pass: it is what an operator reads first.
func (s readiness) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), checkTimeout)
	defer cancel()
	var (
		report strings.Builder
		status = http.StatusOK
	)
	for _, check := range s.checks() {
		result := "ok"
		if err := check.Func(ctx); err != nil {
			status, result = http.StatusServiceUnavailable, "not ok"
			if s.mayReadAll(r) {
				result = s.clean(err.Error())
			}
		}
		fmt.Fprintf(&report, "%s: %s\n", check.Name, result)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprint(w, report.String())
}
