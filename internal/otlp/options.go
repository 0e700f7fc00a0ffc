package otlp

import (
	"crypto/tls"
	"time"
)

// Exporter is how the options of an exporter are made; each has its own types for them.
type Exporter[O any] struct {
	Timeout func(time.Duration) O
	URL     func(string) O
	Headers func(map[string]string) O
	TLS     func(*tls.Config) O
}

// Options tells an exporter the target. It reads the variables for what it is not told.
func (e Exporter[O]) Options(t Target) []O {
	options := []O{e.Timeout(t.Timeout)}
	if t.URL != "" {
		options = append(options, e.URL(t.URL))
	}
	if len(t.Headers) > 0 {
		options = append(options, e.Headers(t.Headers))
	}
	if t.TLS != nil {
		options = append(options, e.TLS(t.TLS))
	}
	return options
}
