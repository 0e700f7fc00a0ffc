package cassandra

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/gocql/gocql"
)

// answerOf is an error frame of a node.
type answerOf struct {
	code    int
	message string
}

func (a answerOf) Code() int       { return a.code }
func (a answerOf) Message() string { return a.message }
func (a answerOf) Error() string   { return a.message }

func TestOnlyWhatNoWaitingMendsEndsAStart(t *testing.T) {
	for _, c := range []struct {
		err  error
		wait bool
	}{
		{io.EOF, true},
		{&net.OpError{Op: "dial", Err: errors.New("connection refused")}, true},
		{&net.DNSError{Err: "no such host", Name: "cassandra"}, true},
		{errors.New("gocql: no response to connection startup within timeout"), true},
		{answerOf{gocql.ErrCodeBootstrapping, "the node is bootstrapping"}, true},
		{answerOf{gocql.ErrCodeCredentials,
			"Unable to perform authentication: Cannot achieve consistency level LOCAL_ONE"}, true},
		{answerOf{gocql.ErrCodeCredentials,
			"Error performing internal authentication of user kdedup : timed out"}, true},
		{answerOf{gocql.ErrCodeCredentials,
			"Provided username kdedup and/or password are incorrect"}, false},
		{errors.New(
			`authentication required (using "org.apache.cassandra.auth.PasswordAuthenticator")`),
			false},
		{gocql.NewErrProtocol("unexpected protocol version in response"), false},
		{fmt.Errorf("tls: %w",
			&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}), false},
		{tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, false},
		{&net.OpError{Op: "remote error", Err: tls.AlertError(42)}, false},
	} {
		failed := &connectError{errors.New("gocql: unable to create session"),
			[]error{io.EOF, c.err}}
		if got := Unreachable(fmt.Errorf("open store: %w", failed)); got != c.wait {
			t.Errorf("%v: unreachable is %v", c.err, got)
		}
	}
	filtered := &connectError{errors.New(
		"unable to connect to initial hosts: host was filtered: 10.0.0.1"), nil}
	if Unreachable(filtered) {
		t.Error("hosts of another data centre are unreachable")
	}
}

// A proxy takes connections while its node is down, and closes them.
func TestANodeThatClosesConnectionsIsUnreachable(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var closing sync.WaitGroup
	closing.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		closing.Wait()
	})
	for range 20 { // EOF, or a reset
		options := Options{
			Hosts: []string{listener.Addr().String()}, Keyspace: "kdedup",
			Consistency:       "LOCAL_QUORUM",
			SerialConsistency: "LOCAL_SERIAL", Timeout: time.Second, Connections: 1, InFlight: 1,
			BatchClaims: 1,
			Logger:      slog.New(slog.DiscardHandler),
		}
		if _, err := Open(t.Context(), options, nil); !Unreachable(err) {
			t.Errorf("got %v", err)
		}
	}
}
