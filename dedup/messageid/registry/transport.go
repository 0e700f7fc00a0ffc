package registry

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/http"
)

func transport(current func() *tls.Config) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	if current != nil {
		t.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			dialer := tls.Dialer{Config: current()}
			return dialer.DialContext(ctx, network, address)
		}
	}
	return t
}

// refuseRedirect keeps the password at the address that was configured.
func refuseRedirect(to *http.Request, _ []*http.Request) error {
	return fmt.Errorf("it redirects to %s://%s, which is not followed: name the place itself",
		to.URL.Scheme, to.URL.Host)
}

// mostBytes bounds an answer.
const mostBytes = 8 << 20

// trip adds to a request what each has, and cuts the answer off.
type trip struct {
	http.RoundTripper
	tokens  Tokens
	headers http.Header
}

func (t trip) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context()) // which is not ours
	maps.Copy(r.Header, t.headers)
	token := ""
	if t.tokens != nil {
		var err error
		if token, err = t.tokens.Token(r.Context()); err != nil {
			return nil, err
		}
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := t.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if t.tokens != nil && answer.StatusCode == http.StatusUnauthorized {
		t.tokens.Refused(token)
	}
	answer.Body = http.MaxBytesReader(nil, answer.Body, mostBytes)
	return answer, nil
}
