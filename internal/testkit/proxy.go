package testkit

import (
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy stands between a client and its server on loopback, and can lose an answer: then the server
// has done what the client never hears of. It can make other trouble as well, see Trouble.
type Proxy struct {
	listener net.Listener
	upstream string
	all      sync.WaitGroup
	stopped  chan struct{}

	mu      sync.Mutex
	loses   func(answer []byte) bool // nil: none
	trouble Trouble
	delay   time.Duration // of what is late, at most
	conns   []net.Conn
}

// StartProxy returns a proxy to the address. It stops with the test.
func StartProxy(t testing.TB, upstream string) *Proxy {
	t.Helper()
	return StartProxyAt(t, "127.0.0.1:0", upstream)
}

// StartProxyAt is StartProxy for an address that the clients know already.
func StartProxyAt(t testing.TB, address, upstream string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: listener, upstream: upstream, stopped: make(chan struct{})}
	p.all.Go(p.accept)
	t.Cleanup(func() {
		close(p.stopped)
		_ = listener.Close()
		p.Cut()
		p.all.Wait()
	})
	return p
}

// Addr is where clients find the proxy, as host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// LoseNext breaks the next connection on which an answer comes that is meant, instead of passing it
// on.
func (p *Proxy) LoseNext(meant func(answer []byte) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.loses = meant
}

// Cut breaks all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutLocked()
}

func (p *Proxy) cutLocked() {
	for _, conn := range p.conns {
		_ = conn.Close()
	}
	p.conns = nil
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := p.dial()
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		p.mu.Unlock()
		p.all.Go(func() { pass(server, client, p.request) })
		p.all.Go(func() { pass(client, server, p.answer) })
	}
}

// lose reports whether this is the answer to lose.
func (p *Proxy) lose(answer []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.loses == nil || !p.loses(answer) {
		return false
	}
	p.loses = nil
	return true
}

// fate is what becomes of some bytes.
type fate int

const (
	passed fate = iota
	lost        // and whatever follows them
	broken      // the connection ends instead
)

// pass ends both directions when one ends.
func pass(to, from net.Conn, decide func([]byte) fate) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 64<<10)
	silent := false
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		switch decide(buffer[:n]) {
		case broken:
			return
		case lost:
			silent = true
		}
		if silent {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}
