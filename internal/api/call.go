package api

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/reflect/protoreflect"

	kdedupv1 "github.com/kdedup/kdedup/api/kdedup/v1"
	"github.com/kdedup/kdedup/dedup"
)

// Call is what a span tells of a request to one of the methods.
type Call struct {
	Procedure string // kdedup.v1.ClaimService/Judge
	GRPC      bool   // or gRPC-Web; else Connect, to which plain JSON belongs
	Caller    string // empty: the server tells no callers apart
	Scope     string // empty: the request was refused before it was read
	Store     string // that was asked, by its type
	IDs       int    // that the request has
	Verdicts  [dedup.VerdictCount]int
	Outcome   string // of Begin
	Code      string // of the answer: ok, or as connect spells it, or CodeUnread
	Err       error
}

const (
	// CodeOK is that of an answer.
	CodeOK = "ok"
	// CodeUnread stands for a request that no method saw: it is malformed, or too large.
	CodeUnread = "unread"
)

// ServerFault reports whether a call failed by what the server or its store did. What the caller
// did wrong is no error of a server, say OpenTelemetry's conventions.
func (c *Call) ServerFault() bool {
	if c.Err == nil {
		return false
	}
	switch connect.CodeOf(c.Err) {
	case connect.CodeUnknown, connect.CodeDeadlineExceeded, connect.CodeUnimplemented,
		connect.CodeInternal, connect.CodeUnavailable, connect.CodeDataLoss:
		return true
	}
	return false
}

// Tracer makes the spans of calls. It is safe for concurrent use.
type Tracer interface {
	// Begin makes a span in the trace that the headers name, or in one of its own. It returns nil
	// for a call that is not sampled.
	Begin(headers http.Header, procedure string) Span
}

// Span is that of a call under way.
type Span interface {
	// Exemplar names the span to the histogram of the requests' times.
	Exemplar() prometheus.Labels
	End(*Call)
}

// asked is a request of a caller that is known, on its way through the server.
type asked struct {
	Call
	caller *Caller // nil: whoever reaches the server may use every scope
	method string  // empty for what is none of the methods
	span   Span    // nil: not sampled
}

type askedKey struct{}

// askedOf is nil in the context of a request that the guard has not let through.
func askedOf(ctx context.Context) *asked {
	a, _ := ctx.Value(askedKey{}).(*asked)
	return a
}

// mayUse reports whether the caller may use a scope.
func (a *asked) mayUse(scope string) bool {
	return a != nil && (a.caller == nil || slices.Contains(a.caller.Scopes, scope))
}

// methods are those of the services, by the path of a request.
var methods = func() map[string]string {
	all := make(map[string]string)
	for _, file := range []protoreflect.FileDescriptor{
		kdedupv1.File_kdedup_v1_claims_proto, kdedupv1.File_kdedup_v1_idempotency_proto,
	} {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				method := string(service.Methods().Get(j).Name())
				all["/"+string(service.FullName())+"/"+method] = method
			}
		}
	}
	return all
}()

// traced lets a request through that has a caller, and tells of it when it has been answered.
func (g *guard) traced(
	w http.ResponseWriter, r *http.Request, caller *Caller, next http.HandlerFunc,
) {
	a := &asked{caller: caller, method: methods[r.URL.Path]}
	r = r.WithContext(context.WithValue(r.Context(), askedKey{}, a))
	if a.method == "" {
		next(w, r)
		return
	}
	g.metrics.called(caller)
	began := time.Now()
	a.Procedure = r.URL.Path[1:]
	if g.tracer != nil {
		a.GRPC = strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc")
		if caller != nil {
			a.Caller = caller.Name
		}
		a.span = g.tracer.Begin(r.Header, a.Procedure)
	}
	next(w, r)
	if a.Code == "" {
		a.Code = CodeUnread
		g.metrics.observe(a, time.Since(began))
	}
	if a.span != nil {
		a.span.End(&a.Call)
	}
}

// observed counts the requests that a method answers.
func (m *Metrics) observed() connect.UnaryInterceptorFunc {
	return func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
			a, began := askedOf(ctx), time.Now()
			m.underWay.Inc()
			defer m.underWay.Dec()
			response, err := next(ctx, r)
			if a != nil && a.method != "" {
				a.answered(err)
				m.observe(a, time.Since(began))
			}
			return response, err
		}
	}
}

func (a *asked) answered(err error) {
	a.Code, a.Err = CodeOK, err
	if err != nil {
		a.Code = connect.CodeOf(err).String()
	}
}

func (m *Metrics) observe(a *asked, took time.Duration) {
	to := m.seconds.WithLabelValues(a.method, a.Code)
	if with, can := to.(prometheus.ExemplarObserver); can && a.span != nil {
		with.ObserveWithExemplar(took.Seconds(), a.span.Exemplar())
		return
	}
	to.Observe(took.Seconds())
}
