package config

import (
	"math"
	"testing"
	"time"
)

func TestTracingRules(t *testing.T) {
	const wantURL = "tracing.endpoint: must be a URL such as http://collector:4318"
	endpoint := func(url string) func(c *Config) {
		return func(c *Config) { c.Tracing.Endpoint = url }
	}
	headers := func(all ...OTLPHeader) func(c *Config) {
		return func(c *Config) { c.Tracing.Headers = all }
	}
	testRules(t, []string{"orders"}, []rule{
		{"on, and all else open", func(c *Config) { c.Tracing.Enabled = true }, ""},
		{"a URL", endpoint("http://collector:4318"), ""},
		{"a URL with a path", endpoint("https://collector.example/otlp"), ""},
		{"no scheme", endpoint("collector:4318"), wantURL},
		{"another scheme", endpoint("unix:///run/otel.sock"), wantURL},
		{"no host", endpoint("http://:4318"), wantURL},
		{"no port that exists", endpoint("http://collector:70000"), wantURL},
		{"a password in the URL", endpoint("http://u:hunter2@collector"),
			"tracing.endpoint: must have no user, query or fragment; put credentials into " +
				"tracing.headers"},
		{"a token in the URL", endpoint("http://collector/?token=hunter2"),
			"tracing.endpoint: must have no user, query or fragment; put credentials into " +
				"tracing.headers"},
		{"gRPC", func(c *Config) {
			c.Tracing.Endpoint, c.Tracing.Protocol = "http://collector:4317", OTLPOverGRPC
		}, ""},
		{"gRPC with a path", func(c *Config) {
			c.Tracing.Endpoint, c.Tracing.Protocol = "http://collector/otlp", OTLPOverGRPC
		},
			"tracing.endpoint: must have no path with tracing.protocol grpc"},
		{"a protocol that nobody speaks", func(c *Config) { c.Tracing.Protocol = "grpcs" },
			`tracing.protocol: must be http/protobuf or grpc, got "grpcs"; did you mean grpc?`},
		{"TLS", func(c *Config) {
			c.Tracing.Endpoint, c.Tracing.TLS.Enabled = "https://collector", true
		}, ""},
		{"TLS without https", func(c *Config) {
			c.Tracing.Endpoint, c.Tracing.TLS.Enabled = "http://collector", true
		},
			"tracing.endpoint: must begin with https:// when tracing.tls.enabled is true"},
		{"a TLS setting without TLS", func(c *Config) { c.Tracing.TLS.ServerName = "collector" },
			"tracing.tls.server_name: has no effect while tracing.tls.enabled is false; set " +
				"enabled to true"},
		{"headers", headers(OTLPHeader{"x-token", "hunter2"},
			OTLPHeader{"Authorization", "Basic aHVudGVyMg=="}), ""},
		{"a header without a name", headers(OTLPHeader{"x-token", "hunter2"},
			OTLPHeader{"", "hunter2"}),
			`tracing.headers[1].name: must be the name of an HTTP header, got ""`},
		{"a header without a value", headers(OTLPHeader{"x-token", ""}),
			"tracing.headers[0].value: must be one line of ASCII text"},
		{"a header of two lines", headers(OTLPHeader{"x-token", "hunter2\r\nx: y"}),
			"tracing.headers[0].value: must be one line of ASCII text"},
		{"all batches", func(c *Config) { c.Tracing.SampleRatio = 1 }, ""},
		{"no batches", func(c *Config) { c.Tracing.SampleRatio = 0 }, ""},
		{"more than all", func(c *Config) { c.Tracing.SampleRatio = 1.5 },
			"tracing.sample_ratio: must be 0 to 1, got 1.5"},
		{"not a number", func(c *Config) { c.Tracing.SampleRatio = math.NaN() },
			"tracing.sample_ratio: must be 0 to 1, got NaN"},
		{"no time to export", func(c *Config) { c.Tracing.Timeout = 0 },
			"tracing.timeout: must be at least 100ms, got 0s"},
		{"too much time", func(c *Config) { c.Tracing.Timeout = 2 * time.Minute },
			"tracing.timeout: must be at most 1m0s, got 2m0s"},
	})
}

func TestTheRulesForTheCollectorOfMetricsNameTheirSection(t *testing.T) {
	testRules(t, []string{"orders"}, []rule{
		{"on, and all else open", func(c *Config) { c.Metrics.OTLP.Enabled = true }, ""},
		{"an unknown way to share series", func(c *Config) { c.Metrics.PerTopic = "some" },
			`metrics.per_topic: must be auto, all or summed, got "some"`},
		{"no scheme", func(c *Config) { c.Metrics.OTLP.Endpoint = "collector:4318" },
			"metrics.otlp.endpoint: must be a URL such as http://collector:4318"},
		{"a password in the URL", func(c *Config) {
			c.Metrics.OTLP.Endpoint = "http://u:hunter2@collector"
		}, "metrics.otlp.endpoint: must have no user, query or fragment; put credentials into " +
			"metrics.otlp.headers"},
		{"gRPC with a path", func(c *Config) {
			c.Metrics.OTLP.Endpoint, c.Metrics.OTLP.Protocol = "http://collector/otlp", OTLPOverGRPC
		}, "metrics.otlp.endpoint: must have no path with metrics.otlp.protocol grpc"},
		{"a header without a value", func(c *Config) {
			c.Metrics.OTLP.Headers = []OTLPHeader{{"x-token", ""}}
		}, "metrics.otlp.headers[0].value: must be one line of ASCII text"},
		{"too often", func(c *Config) { c.Metrics.OTLP.Interval = time.Millisecond },
			"metrics.otlp.interval: must be at least 1s, got 1ms"},
		{"no time to export", func(c *Config) { c.Metrics.OTLP.Timeout = 0 },
			"metrics.otlp.timeout: must be at least 100ms, got 0s"},
	})
}

func TestNumbersCanBeWrittenInEveryForm(t *testing.T) {
	for written, want := range map[string]float64{"0.25": 0.25, "1": 1, "'0.5'": 0.5,
		"${RATIO}": 0.75} {
		c := mustLoad(t, minimal+"tracing: {sample_ratio: "+quoted(written)+"}\n", "RATIO=0.75")
		if c.Tracing.SampleRatio != want {
			t.Errorf("%s is read as %v", written, c.Tracing.SampleRatio)
		}
	}
	for written, want := range map[string]string{
		"many":  `tracing.sample_ratio (line 10): must be a number, got "many"`,
		"true":  "tracing.sample_ratio (line 10): must be a number, got true",
		"[0.5]": "tracing.sample_ratio (line 10): must be a number, got a list",
	} {
		if got := problemsOf(t, minimal+"tracing: {sample_ratio: "+written+"}\n"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// quoted is a reference to a variable as it must stand within braces.
func quoted(written string) string {
	if written[0] == '$' {
		return "'" + written + "'"
	}
	return written
}
