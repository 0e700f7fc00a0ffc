package postgres_test

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// proxy passes bytes on and can lose an answer.
type proxy struct {
	listener net.Listener
	upstream string
	lose     atomic.Bool
	wg       sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
}

func startProxy(t *testing.T, upstream string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, upstream: upstream}
	p.wg.Go(p.accept)
	t.Cleanup(p.stop)
	return p
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

// loseNextInsert closes the connection instead of passing on that an INSERT was done; the server has
// committed it by then.
func (p *proxy) loseNextInsert() { p.lose.Store(true) }

func (p *proxy) accept() {
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
		p.wg.Go(func() { p.pass(server, client, func([]byte) bool { return true }) })
		p.wg.Go(func() { p.pass(client, server, p.passes) })
	}
}

// passes says whether the client gets the bytes of an answer.
func (p *proxy) passes(answer []byte) bool {
	return !bytes.Contains(answer, []byte("INSERT 0 ")) || !p.lose.CompareAndSwap(true, false)
}

// pass ends both directions when one ends.
func (p *proxy) pass(to, from net.Conn, passes func([]byte) bool) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil || !passes(buffer[:n]) {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (p *proxy) stop() {
	_ = p.listener.Close()
	p.mu.Lock()
	for _, conn := range p.conns {
		_ = conn.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}
