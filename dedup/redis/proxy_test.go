package redis_test

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// proxy stands between a store and its server.
type proxy struct {
	listener net.Listener
	upstream string
	swallow  atomic.Bool // break the next connection on which the server answers, without the answer

	mu    sync.Mutex
	conns []net.Conn
	all   sync.WaitGroup
}

func startProxy(t *testing.T, upstream string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, upstream: upstream}
	p.all.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close()
		p.cut()
		p.all.Wait()
	})
	return p
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

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
		p.all.Go(func() {
			_, _ = io.Copy(server, client)
			_ = server.Close()
		})
		p.all.Go(func() {
			_, _ = io.Copy(answers{client, p}, server)
			_ = client.Close()
		})
	}
}

// cut breaks all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range p.conns {
		_ = conn.Close()
	}
	p.conns = nil
}

// answers is the way from the server to a client.
type answers struct {
	client net.Conn
	proxy  *proxy
}

func (a answers) Write(data []byte) (int, error) {
	if a.proxy.swallow.Swap(false) {
		return 0, io.ErrClosedPipe
	}
	return a.client.Write(data)
}
