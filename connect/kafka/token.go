package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/internal/certs"
)

// tokenTimeout bounds one request to the token endpoint. All connections that log in meanwhile
// wait.
const tokenTimeout = 10 * time.Second

// askTokenAgain is the pause after an endpoint gave no new token while there is an old one.
const askTokenAgain = 5 * time.Second

// bearer logs in with tokens of a token endpoint (SASL OAUTHBEARER, RFC 7628).
func bearer(section string, o config.OAuth, log *slog.Logger) (sasl.Mechanism, error) {
	tokens, err := NewTokens(section, o, log)
	if err != nil {
		return nil, err
	}
	extensions := make(map[string]string)
	for _, extension := range o.Extensions {
		name, value, _ := strings.Cut(extension, "=")
		extensions[name] = value
	}
	return outspoken{oauth.Oauth(func(ctx context.Context) (oauth.Auth, error) {
		token, err := tokens.Token(ctx)
		return oauth.Auth{Token: token, Extensions: extensions}, err
	}), section}, nil
}

// outspoken tells why a broker refuses a token: it says so where the client library expects
// nothing.
type outspoken struct {
	sasl.Mechanism
	section string
}

// Authenticate implements sasl.Mechanism.
func (o outspoken) Authenticate(ctx context.Context, host string) (sasl.Session, []byte, error) {
	session, first, err := o.Mechanism.Authenticate(ctx, host)
	return outspokenSession{session, o.section}, first, err
}

type outspokenSession struct {
	sasl.Session
	section string
}

// Challenge implements sasl.Session.
func (s outspokenSession) Challenge(answer []byte) (bool, []byte, error) {
	if len(answer) > 0 {
		return false, nil, &refusedToken{s.section, string(answer)}
	}
	return s.Session.Challenge(answer)
}

// refusedToken is what a broker says about a token, such as {"status":"invalid_token"}.
type refusedToken struct{ section, answer string }

func (r *refusedToken) Error() string {
	return fmt.Sprintf("the broker refuses the token of %s.token_url: %.200q", r.section,
		r.answer)
}

// Tokens asks the token endpoint by the client credentials grant (RFC 6749, section 4.4). One
// token serves all connections; it is renewed when a fifth of its time is left, so that the
// sessions that brokers bound by the token's end are long.
type Tokens struct {
	section  string
	settings clientcredentials.Config
	files    *certs.Follower
	log      *slog.Logger

	mu    sync.Mutex // held while the endpoint is asked
	last  *oauth2.Token
	renew time.Time // when last is too old to log in with, unless there is no other
}

// NewTokens asks nobody yet. Errors name the section of the settings. Extensions are for brokers.
func NewTokens(section string, o config.OAuth, log *slog.Logger) (*Tokens, error) {
	files, err := certs.Client(section, certs.ClientFiles{CAFile: o.CAFile}, log)
	if err != nil {
		return nil, err
	}
	s := &Tokens{section: section, files: files, log: log, settings: clientcredentials.Config{
		ClientID: o.ClientID, ClientSecret: o.ClientSecret.Reveal(), TokenURL: o.TokenURL,
		Scopes: o.Scopes,
	}}
	if o.Audience != "" {
		s.settings.EndpointParams = url.Values{"audience": {o.Audience}}
	}
	return s, nil
}

// Refused is told that somebody takes this token no more: the next one is a new one.
func (s *Tokens) Refused(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != nil && s.last.AccessToken == token {
		s.last, s.renew = nil, time.Time{}
	}
}

// Token returns the old token, if it is still valid, while the endpoint gives no new one.
func (s *Tokens) Token(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Now().Before(s.renew) {
		return s.last.AccessToken, nil
	}
	asked := time.Now()
	fresh, err := s.ask(ctx)
	switch {
	case err == nil:
		s.last, s.renew = fresh, asked
		if !fresh.Expiry.IsZero() { // otherwise nobody said how long it may be kept
			s.renew = asked.Add(fresh.Expiry.Sub(asked) * 4 / 5)
		}
		return fresh.AccessToken, nil
	case s.last != nil && asked.Before(s.last.Expiry):
		s.log.Warn("no new token, the old one stays in use", "error", err, "expires", s.last.Expiry)
		s.renew = time.Now().Add(min(askTokenAgain, time.Until(s.last.Expiry)))
		return s.last.AccessToken, nil
	}
	return "", err
}

// ask takes the authorities as they are now.
func (s *Tokens) ask(ctx context.Context) (*oauth2.Token, error) {
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: s.files.Current(),
		DisableKeepAlives: true,
	}, CheckRedirect: refuseRedirect}
	token, err := s.settings.Token(context.WithValue(ctx, oauth2.HTTPClient, client))
	if err != nil {
		return nil, &loginError{s.section + ".token_url", tokenError(err)}
	}
	return token, nil
}

// refuseRedirect keeps the client secret at the address that was configured: a redirect with status
// 307 or 308 would have it sent on, to whatever host, over whatever protocol.
func refuseRedirect(to *http.Request, _ []*http.Request) error {
	return fmt.Errorf(
		"the endpoint redirects to %s://%s%s, which is not followed: name the place itself",
		to.URL.Scheme, to.URL.Host, to.URL.Path)
}

// tokenError is one line without the body of the answer, which may repeat what was sent, the secret
// included.
func tokenError(err error) error {
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) && refused.Response != nil {
		if refused.ErrorCode == "" {
			return fmt.Errorf("the endpoint answered %s", refused.Response.Status)
		}
		return fmt.Errorf("the endpoint answered %s: %.100q", refused.Response.Status,
			refused.ErrorCode)
	}
	var request *url.Error
	if errors.As(err, &request) {
		return request.Err
	}
	return errors.New("the endpoint's answer holds no token")
}
