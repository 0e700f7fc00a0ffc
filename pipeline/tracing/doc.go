// Package tracing makes OpenTelemetry traces of what the pipelines do, and sends them by OTLP. Only
// it and internal/otlp know OpenTelemetry.
//
// A record whose producer sent a sampled trace context has a span in the producer's trace. A share
// of the batches has a trace of its own, with a span for each step and links to the spans of its
// records. Records are read and never changed: the header with the producer's context goes on as it
// came, so consumers of the clean topic join the same trace.
//
// Nobody waits for a collector. Spans that it does not take in time are dropped and counted.
package tracing
