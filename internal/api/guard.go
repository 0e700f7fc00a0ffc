package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
)

// Caller is a program that the server knows: by its token, by its certificate or, if it has both,
// by both together.
type Caller struct {
	Name        string
	Token       string   // of Authorization: Bearer
	Certificate string   // its common name, or one of its DNS names or URIs
	Scopes      []string // that it may use
}

// guard decides over every request before its method does.
type guard struct {
	local    bool
	callers  []known
	requests chan struct{} // as many as may be under way
	metrics  *Metrics
	tracer   Tracer // nil: no traces
	refusals *connect.ErrorWriter
	log      *slog.Logger
	warned   atomic.Int64 // when a stranger was logged last, in nanoseconds
}

// known is a caller with the digest of its token: digests are compared in a time that tells nothing
// about the token.
type known struct {
	Caller
	digest [sha256.Size]byte
}

func newGuard(o Options, local bool) *guard {
	g := &guard{local: local, log: o.Logger, metrics: o.Metrics,
		tracer: o.Tracer, refusals: connect.NewErrorWriter(),
		requests: make(chan struct{}, o.Limits.Requests)}
	for _, c := range o.Callers {
		g.callers = append(g.callers, known{c, sha256.Sum256([]byte(c.Token))})
	}
	return g
}

// protect lets everybody ask for the health, and only callers that are known for all else. The
// order matters: what a foreign web page asks for is refused before credentials are looked at.
func (g *guard) protect(probes, services http.Handler) http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{"GET /healthz", "GET /readyz", "/grpc.health.v1.Health/"} {
		mux.Handle(path, probes)
	}
	mux.Handle("/", g.authenticated(g.bounded(services)))
	return g.named(http.NewCrossOriginProtection().Handler(mux))
}

var (
	errStranger = errors.New("the caller is unknown: send the token of one of api.callers as " +
		"Authorization: Bearer, or its certificate")
	errBusy = errors.New("too many requests are under way (api.max_requests); repeat it later")
)

// authenticated puts the caller into the context. What strangers ask has no span: they could fill
// the collector.
func (g *guard) authenticated(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(g.callers) == 0 { // only on a loopback address, see New
			g.traced(w, r, nil, next)
			return
		}
		caller := g.callerOf(r)
		if caller == nil {
			g.metrics.refused.WithLabelValues(refusedStranger).Inc()
			g.noteStranger(r)
			w.Header().Set("WWW-Authenticate", `Bearer realm="kdedup"`)
			g.refuse(w, r, http.StatusUnauthorized,
				connect.NewError(connect.CodeUnauthenticated, errStranger))
			return
		}
		g.traced(w, r, caller, next)
	})
}

func (g *guard) callerOf(r *http.Request) *Caller {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	digest := sha256.Sum256([]byte(token))
	var own *x509.Certificate
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		own = r.TLS.VerifiedChains[0][0]
	}
	var found *Caller
	for i := range g.callers { // all of them: the time must not tell which one it is
		c := &g.callers[i]
		hasToken := subtle.ConstantTimeCompare(digest[:], c.digest[:]) == 1
		if (c.Token == "" || hasToken) && (c.Certificate == "" || names(own, c.Certificate)) &&
			found == nil {
			found = &c.Caller
		}
	}
	return found
}

// names reports whether a certificate is of that name.
func names(own *x509.Certificate, name string) bool {
	if own == nil {
		return false
	}
	if own.Subject.CommonName == name || slices.Contains(own.DNSNames, name) {
		return true
	}
	for _, uri := range own.URIs {
		if uri.String() == name {
			return true
		}
	}
	return false
}

// warnEvery is the pause between two log lines about strangers.
const warnEvery = 10 * time.Second

func (g *guard) noteStranger(r *http.Request) {
	last, now := g.warned.Load(), time.Now().UnixNano()
	if now-last > int64(warnEvery) && g.warned.CompareAndSwap(last, now) {
		g.log.Warn("the api refused a caller that it does not know", "from", r.RemoteAddr)
	}
}

// bounded refuses what is beyond the number of requests: each holds memory while it waits.
func (g *guard) bounded(next http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case g.requests <- struct{}{}:
			defer func() { <-g.requests }()
			next.ServeHTTP(w, r)
		default:
			g.metrics.refused.WithLabelValues(refusedBusy).Inc()
			w.Header().Set("Retry-After", "1")
			busy := connect.NewError(connect.CodeResourceExhausted, errBusy)
			askedOf(r.Context()).answered(busy)
			g.refuse(w, r, http.StatusTooManyRequests, busy)
		}
	}
}

// named refuses requests on a loopback address that call the server by a foreign name: a web page
// elsewhere can have its own name resolved to 127.0.0.1 (DNS rebinding).
func (g *guard) named(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.local && !isOurs(r.Host) {
			http.Error(w, "call the api localhost or by its IP address",
				http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isOurs(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	return host == "" || host == "localhost" || net.ParseIP(strings.Trim(host, "[]")) != nil
}

// refuse answers in the caller's own protocol.
func (g *guard) refuse(w http.ResponseWriter, r *http.Request, status int, err *connect.Error) {
	if !g.refusals.IsSupported(r) {
		http.Error(w, err.Message(), status)
		return
	}
	_ = g.refusals.Write(w, r, err) // the client is gone if this fails
}
