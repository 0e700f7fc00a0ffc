package keepers

import (
	"bufio"
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kdedup/kdedup/internal/pause"
)

// What others may have under way here.
const (
	mostConnections = 1024
	mostRequests    = 256       // of a connection
	mostBytes       = 256 << 20 // of all requests
	acceptPause     = 100 * time.Millisecond
)

// Serve implements claimlog.Network.
func (n *Network) Serve(answer func(ctx context.Context, request []byte) []byte) {
	if n.o.Listener == nil {
		return
	}
	s := &server{network: n, answer: answer, free: make(chan struct{}, mostConnections)}
	n.tasks.Go(s.accept)
}

type server struct {
	network *Network
	answer  func(context.Context, []byte) []byte
	free    chan struct{}
	bytes   atomic.Int64
}

func (s *server) accept() {
	n := s.network
	for n.life.Err() == nil {
		conn, err := n.o.Listener.Accept()
		if err != nil {
			if n.life.Err() == nil {
				n.o.Logger.Warn("a connection of another process cannot be accepted", "error", err)
				pause.For(n.life, acceptPause)
			}
			continue
		}
		select {
		case s.free <- struct{}{}:
			n.tasks.Go(func() {
				defer func() { <-s.free }()
				s.serve(conn)
			})
		default:
			conn.Close()
		}
	}
}

// serve answers one process until its connection ends.
func (s *server) serve(conn net.Conn) {
	n := s.network
	ctx, cancel := context.WithCancel(n.life)
	defer cancel()
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := s.converse(ctx, conn); err != nil && ctx.Err() == nil {
		n.o.Logger.Debug("a connection of another process has ended", "from",
			conn.RemoteAddr().String(), "error", err)
	}
}

func (s *server) converse(ctx context.Context, conn net.Conn) error {
	if err := conn.SetDeadline(time.Now().Add(dialTimeout)); err != nil {
		return err
	}
	if s.network.o.TLS != nil {
		encrypted := tls.Server(conn, s.network.encryption())
		if err := encrypted.HandshakeContext(ctx); err != nil {
			return err
		}
		conn = encrypted
	}
	in := bufio.NewReaderSize(conn, inBuffer)
	if err := readPreamble(in); err != nil {
		return err
	}
	c := &conversation{server: s, out: &writer{conn: conn},
		cancels: make(map[uint64]context.CancelFunc)}
	if err := c.out.write([]byte(preamble)); err != nil {
		return err
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	defer c.tasks.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for {
		f, err := readFrame(in)
		if err != nil {
			return err
		}
		if err := c.take(ctx, f); err != nil {
			return err
		}
	}
}

// conversation is a connection on which another process asks.
type conversation struct {
	server *server
	out    *writer
	tasks  sync.WaitGroup

	mu      sync.Mutex
	cancels map[uint64]context.CancelFunc // of what is under way
}

func (c *conversation) take(ctx context.Context, f frame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch f.kind {
	case kindCancel:
		if cancel := c.cancels[f.number]; cancel != nil {
			cancel()
		}
		return nil
	case kindRequest:
	default:
		return errFrame
	}
	size := int64(len(f.payload))
	if c.cancels[f.number] != nil {
		return errFrame
	}
	if len(c.cancels) >= mostRequests || c.server.bytes.Add(size) > mostBytes {
		if len(c.cancels) < mostRequests {
			c.server.bytes.Add(-size)
		}
		return c.out.send(frame{kind: kindBusy, number: f.number})
	}
	ctx, cancel := context.WithCancel(ctx)
	c.cancels[f.number] = cancel
	c.tasks.Go(func() {
		answer := c.server.answer(ctx, f.payload)
		c.mu.Lock()
		delete(c.cancels, f.number)
		c.mu.Unlock()
		c.server.bytes.Add(-size)
		if ctx.Err() == nil {
			_ = c.out.send(frame{kind: kindAnswer, number: f.number, payload: answer})
		}
		cancel()
	})
	return nil
}
