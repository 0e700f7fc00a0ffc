package tracing

import (
	"context"
	"sync"
	"testing"
	"unicode/utf8"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// nowhere is a processor that keeps nothing.
type nowhere struct{}

func (nowhere) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (nowhere) OnEnd(sdktrace.ReadOnlySpan)                     {}
func (nowhere) Shutdown(context.Context) error                  { return nil }
func (nowhere) ForceFlush(context.Context) error                { return nil }

// mustEncode fails for texts that protobuf refuses.
type mustEncode struct{ t testing.TB }

func (m mustEncode) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	for _, s := range spans {
		if !utf8.ValidString(s.SpanContext().TraceState().String()) ||
			!utf8.ValidString(s.Status().Description) {
			m.t.Errorf("cannot be exported: %+v", s)
		}
		for _, a := range s.Attributes() {
			if !utf8.ValidString(a.Value.String()) {
				m.t.Errorf("%s cannot be exported: %q", a.Key, a.Value.String())
			}
		}
	}
	return nil
}

func (mustEncode) Shutdown(context.Context) error { return nil }

// collector is an exporter that answers as it is told.
type collector struct {
	answer func(ctx context.Context) error

	mu   sync.Mutex
	took int // spans
}

func (c *collector) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := c.answer(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.took += len(spans)
	return nil
}

func (c *collector) Shutdown(context.Context) error { return nil }
