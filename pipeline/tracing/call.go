package tracing

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/api"
)

// Attributes of calls that no convention has.
const (
	keyCaller      = attribute.Key("kdedup.api.caller")
	keyScope       = attribute.Key("kdedup.api.scope")
	keyIDs         = attribute.Key("kdedup.api.ids")
	keyCallOutcome = attribute.Key("kdedup.api.outcome")
	keyStore       = attribute.Key("kdedup.store")
	// keyVerdicts has the name of a verdict behind it.
	keyVerdicts = "kdedup.api.verdicts."
)

// Calls makes the spans of calls to the API.
type Calls struct{ tracer trace.Tracer }

var _ api.Tracer = (*Calls)(nil)

// Calls makes the spans of calls to the API of the process.
func (p *Provider) Calls() *Calls { return newCalls(p.sdk) }

func newCalls(provider trace.TracerProvider) *Calls {
	return &Calls{provider.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL))}
}

// Begin implements api.Tracer.
func (c *Calls) Begin(headers http.Header, procedure string) api.Span {
	parent := propagation.TraceContext{}.Extract(context.Background(),
		propagation.HeaderCarrier(headers))
	_, span := c.tracer.Start(parent, procedure, trace.WithSpanKind(trace.SpanKindServer))
	if !span.IsRecording() {
		return nil
	}
	return call{span}
}

// call is the span of one.
type call struct{ span trace.Span }

// Exemplar implements api.Span.
func (c call) Exemplar() prometheus.Labels { return sampled(c.span).Labels() }

// End implements api.Span.
func (c call) End(of *api.Call) {
	now := trace.WithTimestamp(time.Now())
	c.span.SetAttributes(attributesOf(of)...)
	if of.Err != nil {
		c.span.RecordError(cleanError{of.Err}, now)
	}
	if of.Code != api.CodeOK {
		c.span.SetAttributes(semconv.ErrorTypeKey.String(of.Code))
	}
	if of.ServerFault() {
		c.span.SetStatus(codes.Error, clean(of.Err.Error()))
	}
	c.span.End(now)
}

func attributesOf(of *api.Call) []attribute.KeyValue {
	all := []attribute.KeyValue{semconv.RPCSystemNameConnectrpc, semconv.RPCMethod(of.Procedure)}
	if of.GRPC {
		all[0] = semconv.RPCSystemNameGRPC
	}
	if of.Code != api.CodeUnread {
		all = append(all, semconv.RPCResponseStatusCode(of.Code))
	}
	for _, text := range []struct {
		key   attribute.Key
		value string
	}{
		{keyCaller, of.Caller}, {keyScope, of.Scope}, {keyStore, of.Store},
		{keyCallOutcome, of.Outcome},
	} {
		if text.value != "" {
			all = append(all, text.key.String(clean(text.value)))
		}
	}
	if of.Scope != "" {
		all = append(all, keyIDs.Int(of.IDs))
	}
	for verdict, n := range of.Verdicts {
		if n > 0 {
			all = append(all, attribute.Int(keyVerdicts+dedup.Verdict(verdict).String(), n))
		}
	}
	return all
}
