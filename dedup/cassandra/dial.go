package cassandra

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/gocql/gocql"
)

// tlsDialer asks for the TLS configuration at each connection: certificates are renewed while the
// session lives. The driver's own dialer keeps what it was given first.
type tlsDialer struct {
	timeout time.Duration // of the connection and its handshake together
	config  func() *tls.Config
}

var _ gocql.HostDialer = tlsDialer{}

// DialHost implements gocql.HostDialer.
func (d tlsDialer) DialHost(ctx context.Context, host *gocql.HostInfo) (*gocql.DialedHost, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", host.ConnectAddressAndPort())
	if err != nil {
		return nil, err
	}
	return gocql.WrapTLS(ctx, conn, host.HostnameAndPort(), d.config())
}
