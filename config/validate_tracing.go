package config

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"
)

func (t Tracing) check(p *problems) {
	collector{"tracing", t.Endpoint, t.Protocol, t.Headers, t.TLS, t.Timeout}.check(p)
	if !(t.SampleRatio >= 0 && t.SampleRatio <= 1) { // also what is not a number
		p.add("tracing.sample_ratio", "", "must be 0 to 1, got %v", t.SampleRatio)
	}
}

func (m MetricsOTLP) check(p *problems) {
	const path = "metrics.otlp"
	collector{path, m.Endpoint, m.Protocol, m.Headers, m.TLS, m.Timeout}.check(p)
	within(p, path+".interval", m.Interval, time.Second, time.Hour)
}

// collector is what a section says about where telemetry goes.
type collector struct {
	path               string // of the section
	endpoint, protocol string
	headers            []OTLPHeader
	tls                TLS
	timeout            time.Duration
}

func (c collector) check(p *problems) {
	if c.protocol != "" {
		oneOf(p, c.path+".protocol", c.protocol, OTLPOverHTTP, OTLPOverGRPC)
	}
	if c.endpoint != "" {
		c.checkEndpoint(p)
	}
	for i, h := range c.headers {
		h.check(p, fmt.Sprintf("%s.headers[%d]", c.path, i))
	}
	c.tls.check(p, c.path+".tls")
	within(p, c.path+".timeout", c.timeout, 100*time.Millisecond, time.Minute)
}

// checkEndpoint does not show the value where it may hold a secret.
func (c collector) checkEndpoint(p *problems) {
	path := c.path + ".endpoint"
	u, err := url.Parse(c.endpoint)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || !isHost(u.Hostname()) ||
		u.Port() != "" && !isPort(u.Port(), 1):
		p.add(path, "", "must be a URL such as http://collector:4318")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		p.add(path, "put credentials into "+c.path+".headers",
			"must have no user, query or fragment")
	case c.protocol == OTLPOverGRPC && strings.Trim(u.Path, "/") != "":
		p.add(path, "", "must have no path with %s.protocol grpc", c.path)
	case c.tls.Enabled && u.Scheme == "http":
		p.add(path, "", "must begin with https:// when %s.tls.enabled is true", c.path)
	}
}

var (
	headerName  = regexp.MustCompile("^[a-zA-Z0-9!#$%&'*+.^_`|~-]+$")
	headerValue = regexp.MustCompile(`^[\x20-\x7e]+$`)
)

func (h OTLPHeader) check(p *problems, path string) {
	if !headerName.MatchString(h.Name) {
		p.add(path+".name", "", "must be the name of an HTTP header, got %q", h.Name)
	}
	if !headerValue.MatchString(h.Value.Reveal()) {
		p.add(path+".value", "", "must be one line of ASCII text")
	}
}
