package otlp

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/resource"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// Resource says who sends. OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME win.
func Resource(ctx context.Context, instance, version string) (*resource.Resource, error) {
	about, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(
			semconv.ServiceName("kdedup"), semconv.ServiceInstanceID(instance),
			semconv.ServiceVersion(version),
		),
		resource.WithFromEnv(),
	)
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return about, nil
}

// Quieten sends what the SDK says about itself to our log. It has one place for that in a process.
func Quieten(log *slog.Logger) {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.Debug("opentelemetry", "error", err)
	}))
	otel.SetLogger(logr.New(complaints{log}))
}

// complaints are what the SDK finds wrong with its environment variables. It adds their values,
// which may be secrets: only what it was doing is logged.
type complaints struct{ log *slog.Logger }

var _ logr.LogSink = complaints{}

// Init implements logr.LogSink.
func (complaints) Init(logr.RuntimeInfo) {}

// Enabled leaves out all that is not an error.
func (complaints) Enabled(int) bool { return false }

// Info implements logr.LogSink.
func (complaints) Info(int, string, ...any) {}

// Error implements logr.LogSink.
func (c complaints) Error(_ error, doing string, _ ...any) {
	c.log.Warn("opentelemetry cannot use an OTEL_ variable", "doing", doing)
}

// WithValues implements logr.LogSink.
func (c complaints) WithValues(...any) logr.LogSink { return c }

// WithName implements logr.LogSink.
func (c complaints) WithName(string) logr.LogSink { return c }
