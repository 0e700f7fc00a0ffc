package otlp

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"
)

// The protocols, as OTEL_EXPORTER_OTLP_PROTOCOL names them.
const (
	protocolHTTP = "http/protobuf"
	protocolGRPC = "grpc"
)

// Signal is a kind of telemetry.
type Signal struct {
	variable string // within the names of its variables
	path     string // that HTTP has for it
	section  string // of the configuration
}

// The signals that are sent.
var (
	Traces  = Signal{variable: "TRACES", path: "traces", section: "tracing"}
	Metrics = Signal{variable: "METRICS", path: "metrics", section: "metrics.otlp"}
)

// Collector is where telemetry goes. What is empty follows the OTEL_EXPORTER_OTLP_… variables.
type Collector struct {
	Endpoint string // a URL; for HTTP the base, to which v1/traces or v1/metrics is added
	Protocol string // http/protobuf or grpc
	Headers  map[string]string
	TLS      *tls.Config   // only with https
	Timeout  time.Duration // of one export, with its repeats
}

// Target is what an exporter is to be told. It reads the variables for what is empty.
type Target struct {
	GRPC    bool // otherwise HTTP
	URL     string
	Headers map[string]string
	TLS     *tls.Config
	Timeout time.Duration
}

// Target tells where a signal goes.
func (c Collector) Target(s Signal) (Target, error) {
	t := Target{Headers: c.Headers, TLS: c.TLS, Timeout: c.Timeout}
	switch protocol := c.protocol(s); protocol {
	case protocolHTTP:
		if endpoint := c.endpoint(s, "http://localhost:4318"); endpoint != "" {
			t.URL = s.url(endpoint)
		}
	case protocolGRPC:
		t.GRPC, t.URL = true, c.endpoint(s, "http://localhost:4317")
	default:
		return Target{}, fmt.Errorf(
			"OTEL_EXPORTER_OTLP_PROTOCOL must be %s or %s, got %q; or set %s.protocol",
			protocolHTTP, protocolGRPC, protocol, s.section)
	}
	return t, nil
}

func (c Collector) protocol(s Signal) string {
	return cmp.Or(c.Protocol, s.variableOr("PROTOCOL"), protocolHTTP)
}

// endpoint is empty if the environment has one, which the exporters read.
func (c Collector) endpoint(s Signal, normal string) string {
	if c.Endpoint == "" && s.variableOr("ENDPOINT") == "" {
		return normal
	}
	return c.Endpoint
}

// variableOr is the variable of the signal, or else the one for all signals.
func (s Signal) variableOr(name string) string {
	return cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_"+s.variable+"_"+name),
		os.Getenv("OTEL_EXPORTER_OTLP_"+name))
}

// url adds the path of the signal to a base. Configuration has checked the URL.
func (s Signal) url(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil || strings.HasSuffix(u.Path, "/v1/"+s.path) {
		return endpoint
	}
	return u.JoinPath("v1", s.path).String()
}

// Hider takes the values of the headers out of a text.
func (c Collector) Hider() *strings.Replacer {
	var pairs []string
	for _, value := range c.Headers {
		pairs = append(pairs, value, "[hidden]")
	}
	return strings.NewReplacer(pairs...)
}
