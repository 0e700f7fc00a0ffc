// Package api serves the claims of a store to programs in any language: gRPC, gRPC-Web and JSON
// over HTTP, on one port. The messages are those of api/kdedup/v1.
//
// Who may use which scope is decided in guard.go and in ask.go, in one place for all methods.
package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"

	"github.com/kdedup/kdedup/api/kdedup/v1/kdedupv1connect"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/idempotency"
	"github.com/kdedup/kdedup/internal/certs"
)

// Options describe the server.
type Options struct {
	Listen  string            // host:port; port 0 takes any free one
	TLS     certs.ServerFiles // none without CertFile
	Callers []Caller          // none: whoever reaches a loopback address may use every scope
	Scopes  Scopes
	Store   dedup.Store
	Keys    idempotency.Store // nil: the IdempotencyService refuses all
	Kinds   Kinds
	// Ready says why claims cannot be decided now. It is asked once a second at the most.
	Ready   func(context.Context) error
	Limits  Limits
	Metrics *Metrics
	Tracer  Tracer // nil: no traces
	Logger  *slog.Logger
}

// Scopes finds a scope by the name that callers use. The scope is registered with the store. It is
// safe for concurrent use.
type Scopes func(name string) (scope dedup.Scope, known bool)

// Kinds name the stores of claims and of keys to spans.
type Kinds struct{ Claims, Keys string }

// Limits are what callers may take of the process.
type Limits struct {
	Bytes    int           // of one request
	Batch    int           // messages of one request
	Requests int           // under way at once
	Wait     time.Duration // how long a request may wait for the store, whatever its deadline
}

// Server listens from the moment it is made, so that a wrong address is an error of the start.
type Server struct {
	listener net.Listener
	http     http.Server
	tls      bool
}

const (
	// stopTimeout is how long an answer may still take when the process stops.
	stopTimeout = 3 * time.Second

	headerTimeout  = 5 * time.Second
	idleTimeout    = 5 * time.Minute
	maxHeaderBytes = 16 << 10
	// transferTime is what a request may take beside its wait for the store.
	transferTime = 10 * time.Second
)

// New binds the address and reads the certificates. It refuses an address that other machines reach
// without encryption and callers that it can tell apart.
func New(o Options) (*Server, error) {
	s := &Server{}
	if o.TLS.CertFile != "" {
		files, err := certs.Server("api.tls", o.TLS, o.Logger)
		if err != nil {
			return nil, err
		}
		s.http.TLSConfig, s.tls = files.Listening(), true
	}
	listener, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("api.listen: %w", err)
	}
	local := isLoopback(listener.Addr())
	if !local && (!s.tls || len(o.Callers) == 0) {
		_ = listener.Close()
		return nil, fmt.Errorf("api.listen: %s is no loopback address: other machines need "+
			"api.tls and api.callers", listener.Addr())
	}
	s.listener = listener
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	s.http.Protocols = &protocols
	s.http.ReadHeaderTimeout, s.http.IdleTimeout = headerTimeout, idleTimeout
	// both cut a wait for the store, too
	s.http.ReadTimeout, s.http.WriteTimeout = o.Limits.Wait+transferTime, o.Limits.Wait+transferTime
	s.http.MaxHeaderBytes = maxHeaderBytes
	s.http.ErrorLog = slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug)
	probes, services, err := routes(o)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	s.http.Handler = newGuard(o, local).protect(probes, services)
	return s, nil
}

// routes are the services.
func routes(o Options) (open, closed http.Handler, err error) {
	options := []connect.HandlerOption{
		withCodecs(o.Limits.Batch),
		connect.WithReadMaxBytes(o.Limits.Bytes),
		// answers are short and their texts random
		connect.WithCompressMinBytes(1 << 30),
		connect.WithInterceptors(o.Metrics.observed(), waiting(o.Limits.Wait)),
		connect.WithRecover(func(_ context.Context, spec connect.Spec, _ http.Header, p any) error {
			o.Logger.Error("a request made kdedup panic", "method", spec.Procedure, "panic", p)
			return connect.NewError(connect.CodeInternal, errors.New("a defect of kdedup"))
		}),
	}
	services := []string{kdedupv1connect.ClaimServiceName}
	mux := http.NewServeMux()
	mux.Handle(kdedupv1connect.NewClaimServiceHandler(newClaims(o), options...))
	if o.Keys == nil {
		mux.Handle(kdedupv1connect.NewIdempotencyServiceHandler(
			kdedupv1connect.UnimplementedIdempotencyServiceHandler{},
			append(slices.Clip(options), connect.WithInterceptors(keyless()))...))
	} else {
		keys, err := newKeys(o)
		if err != nil {
			return nil, nil, err
		}
		services = append(services, kdedupv1connect.IdempotencyServiceName)
		mux.Handle(kdedupv1connect.NewIdempotencyServiceHandler(keys, options...))
	}
	reflector := grpcreflect.NewStaticReflector(services...)
	mux.Handle(grpcreflect.NewHandlerV1(reflector, options...))
	mux.Handle(grpcreflect.NewHandlerV1Alpha(reflector, options...))

	health := newHealth(o.Ready, services)
	probes := http.NewServeMux()
	probes.Handle(grpchealth.NewHandler(health, connect.WithReadMaxBytes(maxHeaderBytes)))
	probes.HandleFunc("GET /healthz", healthy)
	probes.HandleFunc("GET /readyz", health.ready)
	return probes, explained(mux), nil
}

// Addr is the bound address.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// URL is where callers reach the server, by the bound address.
func (s *Server) URL() string {
	if s.tls {
		return "https://" + s.Addr()
	}
	return "http://" + s.Addr()
}

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	failed := make(chan error, 1)
	go func() { failed <- s.serve() }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve the api: %w", err)
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	err := s.http.Shutdown(stopping)
	<-failed
	if errors.Is(err, context.DeadlineExceeded) {
		return s.http.Close() // callers repeat what has no answer
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

func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
