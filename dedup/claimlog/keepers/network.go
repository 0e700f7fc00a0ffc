package keepers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"

	"github.com/kdedup/kdedup/dedup/claimlog"
)

// Options of a network.
type Options struct {
	// Listener is where other processes ask, and the network closes it; nil: nobody does.
	Listener net.Listener
	// TLS returns the settings for the next connection, of both sides; nil: connections are not
	// encrypted, and nobody is asked who he is
	TLS     func() *tls.Config
	Members *Members
	Logger  *slog.Logger
}

// Network is how the processes of a claim log reach each other.
type Network struct {
	o     Options
	life  context.Context // ends with the network
	stop  context.CancelFunc
	tasks sync.WaitGroup

	mu     sync.Mutex
	closed bool
	links  map[string]*link // by address
}

var _ claimlog.Network = (*Network)(nil)

// New returns a network that answers nobody before Serve.
func New(o Options) *Network {
	ctx, cancel := context.WithCancel(context.Background())
	return &Network{o: o, life: ctx, stop: cancel, links: make(map[string]*link)}
}

// Join implements claimlog.Network.
func (n *Network) Join(
	ctx context.Context, group string, self claimlog.Member, changed func([]claimlog.Member),
) error {
	return n.o.Members.join(ctx, group, self, changed)
}

// Ask implements claimlog.Network. All requests to an address share a connection.
func (n *Network) Ask(ctx context.Context, address string, request []byte) ([]byte, error) {
	if len(request) > mostFrame-headBytes {
		return nil, fmt.Errorf("a request of %d bytes is too large for a keeper", len(request))
	}
	for {
		l, err := n.link(ctx, address)
		if err != nil {
			return nil, fmt.Errorf("connect to the keeper at %s: %w", address, err)
		}
		answer, err := l.ask(ctx, request)
		if errors.Is(err, errUnused) && ctx.Err() == nil {
			continue // it had ended before it was sent
		}
		if err != nil {
			return nil, fmt.Errorf("ask the keeper at %s: %w", address, err)
		}
		return answer, nil
	}
}

// link returns the connection to an address, which is made if there is none.
func (n *Network) link(ctx context.Context, address string) (*link, error) {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil, net.ErrClosed
	}
	l := n.links[address]
	if l == nil || l.hasEnded() {
		l = newLink()
		n.links[address] = l
		n.tasks.Go(func() { l.run(n.life, address, n.client(address)) })
	}
	n.mu.Unlock()
	select {
	case <-l.ready:
		return l, nil
	case <-l.ended:
		return nil, l.why
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// encryption is that of the next connection. What is sent is a batch, and is of no use before all
// of it is there: records are large from the first on. By default they grow from 1 KiB once a
// connection was silent for a second, each a call of the system.
func (n *Network) encryption() *tls.Config {
	c := n.o.TLS().Clone()
	c.DynamicRecordSizingDisabled = true
	return c
}

// client is the side of a connection that asks; nil: it is not encrypted.
func (n *Network) client(address string) *tls.Config {
	if n.o.TLS == nil {
		return nil
	}
	c := n.encryption()
	if c.ServerName == "" {
		if host, _, err := net.SplitHostPort(address); err == nil {
			c.ServerName = host
		}
	}
	return c
}

// Close implements claimlog.Network.
func (n *Network) Close() error {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.stop()
	var err error
	if n.o.Listener != nil {
		err = n.o.Listener.Close()
	}
	n.tasks.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
