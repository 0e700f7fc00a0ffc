package server

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/kdedup/kdedup/process/pagestyle"
)

//go:embed assets
var assets embed.FS

// routes are the paths that protect guards. All but those about one ID are GET and HEAD.
func routes(o Options, local bool, s *sampler, clean func(string) string) http.Handler {
	mux := http.NewServeMux()
	p := newPage(o, s, clean)
	p.changes = mayChange(o, local)
	mux.HandleFunc("GET /{$}", p.show)
	mux.HandleFunc("GET /api/status", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, s.latest.Load())
	})
	mux.HandleFunc("GET /api/config", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, o.Source.Settings())
	})
	for name, before := range map[string]string{"status.css": pagestyle.CSS, "status.js": "",
		"icon.svg": ""} {
		mux.HandleFunc("GET /assets/"+name, asset(name, before))
	}
	if o.Lookup {
		mux.HandleFunc("GET /lookup", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/", http.StatusSeeOther)
		})
		mux.HandleFunc("POST /lookup", p.lookUp)
		mux.HandleFunc("POST /api/lookup", p.lookUpJSON)
		for _, change := range []Change{Release, Claim} {
			mux.HandleFunc("POST /api/"+string(change), p.changed(change))
		}
	}
	if o.Lookup && o.Letters != nil {
		p.letters = p.changes
		box := &letterBox{page: p, letters: o.Letters, sending: make(chan struct{}, 1)}
		box.routes(mux)
	}
	if o.Pprof {
		profiler(mux)
	}
	mux.Handle("GET /metrics", promhttp.HandlerFor(o.Gatherer, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, // a failing collector must not hide the others
		// exemplars, which the text format has no place for
		EnableOpenMetrics: true,
	}))
	return mux
}

func profiler(mux *http.ServeMux) {
	for path, handler := range map[string]http.HandlerFunc{
		"": pprof.Index, "cmdline": pprof.Cmdline, "profile": pprof.Profile, "symbol": pprof.Symbol,
		"trace": pprof.Trace,
	} {
		mux.Handle("GET /debug/pprof/"+path, ownPagesOnly(handler))
	}
}

// asset serves a file of the page, behind a text. Browsers keep it and ask whether it is still the
// same.
func asset(name, before string) http.HandlerFunc {
	content, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // it is part of the program
	}
	content = append([]byte(before), content...)
	tag := fmt.Sprintf(`"%x"`, sha256.Sum256(content))
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("ETag", tag)
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
	}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "encode the answer: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // the client is gone if this fails
}
