// Package otlp is what traces and metrics have in common on their way to a collector: the settings
// and the OTEL_… variables that say where it is, who sends, and how the SDK is kept from logging on
// its own.
package otlp
