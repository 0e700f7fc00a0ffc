package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// checkTimeout bounds one request to /readyz: orchestrators give up after a second or a few.
const checkTimeout = 2 * time.Second

func routes(o Options) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", index)
	mux.HandleFunc("GET /healthz", healthy)
	mux.Handle("GET /readyz", readiness(o.Checks))
	mux.Handle("GET /metrics", promhttp.HandlerFor(o.Gatherer, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, // a failing collector must not hide the others
	}))
	return mux
}

func index(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprint(w, "kdedup\n\n/metrics  for Prometheus\n/healthz  200 while the process lives\n/readyz   200 while every lane is in its group and the store answers\n")
}

// healthy answers as long as the process can: a store that is down is no reason to restart it.
func healthy(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }

type readiness []Check

// ServeHTTP shows every check, also those that pass: it is what an operator reads first.
func (r readiness) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	ctx, cancel := context.WithTimeout(request.Context(), checkTimeout)
	defer cancel()
	var (
		report strings.Builder
		status = http.StatusOK
	)
	for _, check := range r {
		if err := check.Func(ctx); err != nil {
			status = http.StatusServiceUnavailable
			fmt.Fprintf(&report, "%s: %v\n", check.Name, err)
			continue
		}
		fmt.Fprintf(&report, "%s: ok\n", check.Name)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprint(w, report.String())
}
