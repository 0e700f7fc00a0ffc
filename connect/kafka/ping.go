package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Ping asks one broker after the other until one answers. Its error names the section of the
// configuration that is likely at fault.
func Ping(ctx context.Context, client *kgo.Client) error { return pingAt(ctx, client, inputPlace) }

// pingAt is Ping for brokers that the section of a place names.
func pingAt(ctx context.Context, client *kgo.Client, place string) error {
	err := client.Ping(ctx)
	if err == nil {
		return nil
	}
	if own := (*loginError)(nil); errors.As(err, &own) {
		return own
	}
	section, remedy := suspect(err)
	section = place + section
	if remedy != "" {
		return fmt.Errorf("%s: %w; %s", section, err, remedy)
	}
	return fmt.Errorf("%s: %w", section, err)
}

// loginError happened before a broker was asked: a token or credentials cannot be had.
type loginError struct {
	setting string
	err     error
}

func (e *loginError) Error() string { return e.setting + ": " + e.err.Error() }

// Unwrap is the reason.
func (e *loginError) Unwrap() error { return e.err }

// suspect knows what a first connection fails of: which part of a section.
func suspect(err error) (section, remedy string) {
	var (
		unknown    x509.UnknownAuthorityError
		wrongName  x509.HostnameError
		invalid    x509.CertificateInvalidError
		plain      tls.RecordHeaderError
		refused    *refusedToken
		connection *net.OpError
	)
	switch {
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return ".sasl", "check the user and the password"
	case errors.Is(err, kerr.UnsupportedSaslMechanism):
		return ".sasl.mechanism", "ask for one that the listener of the brokers offers"
	case errors.Is(err, kerr.IllegalSaslState):
		return ".sasl", "the listener of the brokers takes no login: remove sasl, or dial the " +
			"listener that asks for one"
	case errors.As(err, &refused):
		return ".sasl", ""
	case errors.As(err, &unknown):
		return ".tls", "ca_file must hold the authority that signed the brokers' certificates"
	case errors.As(err, &wrongName):
		return ".tls", "dial the brokers by a name in their certificates, or set server_name"
	case errors.As(err, &invalid):
		return ".tls", "it is the brokers' certificate that must be renewed"
	case errors.As(err, &plain):
		return ".tls", "does the listener of the brokers speak TLS?"
	case errors.As(err, &connection) && connection.Op == "remote error":
		return ".tls", "the broker refuses the certificate in cert_file, or misses one"
	}
	return ".brokers", ""
}
