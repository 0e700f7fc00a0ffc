package testkit

import (
	"net"
	"sync"
	"testing"
)

// Proxy stands between a client and its server on loopback, and can lose an answer: then the server has
// done what the client never hears of.
type Proxy struct {
	listener net.Listener
	upstream string
	all      sync.WaitGroup

	mu    sync.Mutex
	loses func(answer []byte) bool // nil: none
	conns []net.Conn
}

// StartProxy returns a proxy to the address. It stops with the test.
func StartProxy(t testing.TB, upstream string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: listener, upstream: upstream}
	p.all.Go(p.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		p.Cut()
		p.all.Wait()
	})
	return p
}

// Addr is where clients find the proxy, as host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// LoseNext breaks the next connection on which an answer comes that is meant, instead of passing it on.
func (p *Proxy) LoseNext(meant func(answer []byte) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.loses = meant
}

// Cut breaks all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
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
		server, err := net.Dial("tcp", p.upstream)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		p.mu.Unlock()
		p.all.Go(func() { pass(server, client, func([]byte) bool { return false }) })
		p.all.Go(func() { pass(client, server, p.lose) })
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

// pass ends both directions when one ends.
func pass(to, from net.Conn, loses func([]byte) bool) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil || loses(buffer[:n]) {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}
