// Package server is the HTTP endpoint for operators: /metrics for Prometheus, /healthz and /readyz
// for an orchestrator.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Options describe the server.
type Options struct {
	Listen   string // host:port; port 0 takes any free one
	Gatherer prometheus.Gatherer
	Checks   []Check // all must pass for /readyz to answer 200
	Logger   *slog.Logger
}

// Check is one condition of readiness. Func is called for every request to /readyz.
type Check struct {
	Name string
	Func func(context.Context) error
}

// Server listens from the moment it is made, so that a wrong address is an error of the start.
type Server struct {
	listener net.Listener
	http     http.Server
}

// stopTimeout is how long a scrape may still take when the process stops.
const stopTimeout = 3 * time.Second

// New binds the address.
func New(o Options) (*Server, error) {
	listener, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("server.listen: %w", err)
	}
	return &Server{
		listener: listener,
		http: http.Server{
			Handler:           routes(o),
			ReadHeaderTimeout: 5 * time.Second,
			ErrorLog:          slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
		},
	}, nil
}

// Addr is the bound address.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	failed := make(chan error, 1)
	go func() { failed <- s.http.Serve(s.listener) }()
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

// Close frees the address of a server that never ran.
func (s *Server) Close() error { return s.listener.Close() }
