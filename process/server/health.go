package server

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// checkTimeout bounds the checks for /readyz: orchestrators give up after a second or a few.
const checkTimeout = 2 * time.Second

// healthy answers as long as the process can: a store that is down is no reason to restart it.
func healthy(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }

// readiness answers probes, which have no credentials and need one word. Only who may read the page
// sees the checks, whose names are those of topics.
type readiness struct {
	probes     *prober
	mayReadAll func(*http.Request) bool
}

// ServeHTTP shows every check, also those that pass: it is what an operator reads first.
func (s readiness) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var report strings.Builder
	status, word := http.StatusOK, "ready"
	for _, check := range s.probes.fresh() {
		result := "ok"
		if !check.OK {
			status, word, result = http.StatusServiceUnavailable, "not ready", check.Error
		}
		fmt.Fprintf(&report, "%s: %s\n", check.Name, result)
		for _, note := range check.notes {
			fmt.Fprintf(&report, "  %s\n", note)
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	if !s.mayReadAll(r) {
		fmt.Fprintln(w, word)
		return
	}
	fmt.Fprint(w, report.String())
}
