package config

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"
)

func (t Tracing) check(p *problems) {
	const path = "tracing"
	if t.Protocol != "" {
		oneOf(p, path+".protocol", t.Protocol, OTLPOverHTTP, OTLPOverGRPC)
	}
	if t.Endpoint != "" {
		t.checkEndpoint(p, path+".endpoint")
	}
	for i, h := range t.Headers {
		h.check(p, fmt.Sprintf("%s.headers[%d]", path, i))
	}
	t.TLS.check(p, path+".tls")
	if !(t.SampleRatio >= 0 && t.SampleRatio <= 1) { // also what is not a number
		p.add(path+".sample_ratio", "", "must be 0 to 1, got %v", t.SampleRatio)
	}
	within(p, path+".timeout", t.Timeout, 100*time.Millisecond, time.Minute)
}

// checkEndpoint does not show the value where it may hold a secret.
func (t Tracing) checkEndpoint(p *problems, path string) {
	u, err := url.Parse(t.Endpoint)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || !isHost(u.Hostname()) ||
		u.Port() != "" && !isPort(u.Port(), 1):
		p.add(path, "", "must be a URL such as http://collector:4318")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		p.add(path, "put credentials into tracing.headers", "must have no user, query or fragment")
	case t.Protocol == OTLPOverGRPC && strings.Trim(u.Path, "/") != "":
		p.add(path, "", "must have no path with tracing.protocol grpc")
	case t.TLS.Enabled && u.Scheme == "http":
		p.add(path, "", "must begin with https:// when tracing.tls.enabled is true")
	}
}

var (
	headerName  = regexp.MustCompile("^[a-zA-Z0-9!#$%&'*+.^_`|~-]+$")
	headerValue = regexp.MustCompile(`^[\x20-\x7e]+$`)
)

func (h TracingHeader) check(p *problems, path string) {
	if !headerName.MatchString(h.Name) {
		p.add(path+".name", "", "must be the name of an HTTP header, got %q", h.Name)
	}
	if !headerValue.MatchString(h.Value.Reveal()) {
		p.add(path+".value", "", "must be one line of ASCII text")
	}
}
