package cassandra

import (
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync"

	"github.com/gocql/gocql"
)

// Unreachable reports whether an error of Open says that the nodes do not answer, or not enough of
// them: time may fix that, and no other setting is needed.
func Unreachable(err error) bool {
	for _, outage := range []error{gocql.ErrNoConnections, gocql.ErrTimeoutNoResponse,
		gocql.ErrConnectionClosed, gocql.ErrUnavailable} {
		if errors.Is(err, outage) {
			return true
		}
	}
	var (
		unavailable *gocql.RequestErrUnavailable
		read        *gocql.RequestErrReadTimeout
		write       *gocql.RequestErrWriteTimeout
	)
	if errors.As(err, &unavailable) || errors.As(err, &read) || errors.As(err, &write) {
		return true
	}
	failed, is := errors.AsType[*connectError](err)
	return is && !failed.definite()
}

// connectError is why there is no session. The driver keeps only the text of it, so the errors of
// the single connections are told apart here.
type connectError struct {
	error
	dials []error
}

func (e *connectError) Unwrap() error { return e.error }

// definite says that a node has answered what no waiting fixes: it wants another password,
// certificate or protocol.
func (e *connectError) definite() bool {
	for _, err := range e.dials {
		if isDefinite(err) {
			return true
		}
	}
	// all hosts are in another data centre
	return len(e.dials) == 0 && strings.Contains(e.Error(), "host was filtered")
}

func isDefinite(err error) bool {
	var (
		protocol    gocql.ErrProtocol
		answer      gocql.RequestError
		certificate *tls.CertificateVerificationError
		noTLS       tls.RecordHeaderError
		alert       tls.AlertError
		network     *net.OpError
	)
	switch {
	case errors.As(err, &answer):
		// A node that cannot read the table of its users says so with the code of a wrong password.
		return answer.Code() == gocql.ErrCodeCredentials &&
			!strings.Contains(answer.Message(), "perform authentication") &&
			!strings.Contains(answer.Message(), "internal authentication")
	case errors.As(err, &protocol), errors.As(err, &certificate), errors.As(err, &noTLS),
		errors.As(err, &alert):
		return true
	case errors.As(err, &network):
		return network.Op == "remote error" // an alert of the node, as package tls wraps it
	}
	text := err.Error()
	return strings.HasPrefix(text, "authentication required") ||
		strings.HasPrefix(text, "unexpected authenticator")
}

// dials keeps why connections fail while a session is made.
type dials struct {
	mu     sync.Mutex
	failed []error
	over   bool
}

// ObserveConnect implements gocql.ConnectObserver.
func (d *dials) ObserveConnect(o gocql.ObservedConnect) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if o.Err != nil && !d.over {
		d.failed = append(d.failed, o.Err)
	}
}

// end returns what has failed. What comes later is not kept.
func (d *dials) end() []error {
	d.mu.Lock()
	defer d.mu.Unlock()
	failed := d.failed
	d.failed, d.over = nil, true
	return failed
}
