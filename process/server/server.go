// Package server is the HTTP endpoint for operators: the status page and its JSON, /metrics for
// Prometheus, /healthz and /readyz for an orchestrator. It changes nothing but the claim of an ID,
// and sends a letter again.
//
// Who may read what is decided in protect.go, in one place for all paths.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/internal/certs"
)

// Options describe the server.
type Options struct {
	Listen   string   // host:port; port 0 takes any free one
	Hosts    []string // names that requests may use, see config.Server
	Lookup   bool
	Pprof    bool
	Auth     Auth
	TLS      certs.ServerFiles // none without CertFile
	Gatherer prometheus.Gatherer
	Checks   func() []Check // all must pass for /readyz to answer 200; the page shows them too
	Source   Source
	Letters  Letters // nil: there is no page of them
	About    About
	Secrets  []string // never shown, whatever text they get into
	Logger   *slog.Logger

	Every time.Duration // between two snapshots; zero means two seconds
}

// Check is one condition of readiness. Func is called once a second at the most for requests to
// /readyz, and every ten seconds for the page.
type Check struct {
	Name string
	Func func(context.Context) error
	// Notes tell what is wrong although the check passes, for /readyz; nil: nothing.
	Notes func() []string
}

// Server listens from the moment it is made, so that a wrong address is an error of the start.
type Server struct {
	listener net.Listener
	http     http.Server
	sampler  *sampler
	probes   *prober
	every    time.Duration
	tls      bool
}

const (
	// stopTimeout is how long a scrape may still take when the process stops.
	stopTimeout = 3 * time.Second

	headerTimeout  = 5 * time.Second
	readTimeout    = 10 * time.Second
	writeTimeout   = 30 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 32 << 10
)

// another is an address beside one that is taken.
func another(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	number, errOfPort := strconv.Atoi(port)
	if err != nil || errOfPort != nil || number > 65_000 {
		return "127.0.0.1:9580"
	}
	return net.JoinHostPort(host, strconv.Itoa(number+100))
}

// New binds the address and reads the certificates.
func New(o Options) (*Server, error) {
	if o.Every == 0 {
		o.Every = 2 * time.Second
	}
	if o.Checks == nil {
		o.Checks = func() []Check { return nil }
	}
	clean := Cleaner(o.Secrets)
	probes := &prober{checks: o.Checks, clean: clean}
	s := &Server{probes: probes, sampler: newSampler(o, probes, clean), every: o.Every}
	s.http = http.Server{
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog:  slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
		ConnState: newConnections(mostConnections).changed,
	}
	if o.TLS.CertFile != "" {
		files, err := certs.Server("server.tls", o.TLS, o.Logger)
		if err != nil {
			return nil, err
		}
		s.http.TLSConfig, s.tls = files.Listening(), true
	}
	listener, err := net.Listen("tcp", o.Listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%w: another process has the address; give this one another, such as "+
			"KDEDUP_SERVER_LISTEN=%s (a second kdedup on this machine also needs another "+
			"--instance)", err, another(o.Listen))
	}
	if err != nil {
		return nil, fmt.Errorf("server.listen: %w", err)
	}
	s.listener = listener
	local := isLoopback(listener.Addr())
	warnIfOpen(o, local)
	s.http.Handler = protect(o, local, probes, routes(o, local, s.sampler, clean))
	return s, nil
}

// Addr is the bound address.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// URL is where the status page is, by the bound address.
func (s *Server) URL() string {
	if s.tls {
		return "https://" + s.Addr() + "/"
	}
	return "http://" + s.Addr() + "/"
}

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	watching, stopWatching := context.WithCancel(ctx)
	var watchers sync.WaitGroup
	defer watchers.Wait()
	defer stopWatching()
	s.sampler.sample(time.Now())
	watchers.Go(func() { s.probes.run(watching) })
	watchers.Go(func() { s.sampler.run(watching, s.every) })

	failed := make(chan error, 1)
	go func() { failed <- s.serve() }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve http: %w", err)
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	err := s.http.Shutdown(stopping)
	<-failed
	if errors.Is(err, context.DeadlineExceeded) {
		return s.http.Close() // a slow client must not hold up the stop
	}
	return err
}

func (s *Server) serve() error {
	if s.tls {
		return s.http.ServeTLS(s.listener, "", "")
	}
	return s.http.Serve(s.listener)
}

// Close frees the address of a server that never ran.
func (s *Server) Close() error { return s.listener.Close() }
