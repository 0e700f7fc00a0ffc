package keepers

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/kdedup/kdedup/dedup/claimlog"
)

const (
	dialTimeout  = 3 * time.Second
	writeTimeout = 5 * time.Second
	keepAlive    = 5 * time.Second
)

// link is a connection on which this process asks.
type link struct {
	ready chan struct{} // closed once it can be asked
	ended chan struct{} // closed when it is over, for the reason why
	why   error

	mu      sync.Mutex
	out     *writer
	number  uint64
	waiting map[uint64]chan frame
}

// errUnused is wrapped when a request was surely not sent.
var errUnused = errors.New("the connection had ended")

func newLink() *link {
	return &link{ready: make(chan struct{}), ended: make(chan struct{}),
		waiting: make(map[uint64]chan frame)}
}

func (l *link) hasEnded() bool {
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}

// run connects, and hands out answers until the connection ends.
func (l *link) run(ctx context.Context, address string, settings *tls.Config) {
	err := l.connect(ctx, address, settings)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		err = net.ErrClosed
	}
	l.why, l.out = err, nil
	close(l.ended)
}

func (l *link) connect(ctx context.Context, address string, settings *tls.Config) error {
	dialing, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	dialer := &net.Dialer{KeepAlive: keepAlive}
	conn, err := dialer.DialContext(dialing, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if settings != nil {
		encrypted := tls.Client(conn, settings)
		if err := encrypted.HandshakeContext(dialing); err != nil {
			return err
		}
		conn = encrypted
	}
	out := &writer{conn: conn}
	if err := conn.SetReadDeadline(time.Now().Add(dialTimeout)); err != nil {
		return err
	}
	if err := out.write([]byte(preamble)); err != nil {
		return err
	}
	in := bufio.NewReaderSize(conn, inBuffer)
	if err := readPreamble(in); err != nil {
		return err
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	l.mu.Lock()
	l.out = out
	l.mu.Unlock()
	close(l.ready)
	for {
		f, err := readFrame(in)
		if err != nil {
			return err
		}
		l.mu.Lock()
		waiting := l.waiting[f.number]
		delete(l.waiting, f.number)
		l.mu.Unlock()
		if waiting != nil {
			waiting <- f
		}
	}
}

// ask sends a request, and waits for its answer. When ctx ends, the other side is told.
func (l *link) ask(ctx context.Context, request []byte) ([]byte, error) {
	answer := make(chan frame, 1)
	l.mu.Lock()
	out := l.out
	if out == nil {
		l.mu.Unlock()
		return nil, errUnused
	}
	l.number++
	number := l.number
	l.waiting[number] = answer
	l.mu.Unlock()
	f := frame{kind: kindRequest, number: number, payload: request}
	if err := out.send(f); err != nil {
		l.forget(number)
		return nil, err
	}
	select {
	case f := <-answer:
		switch f.kind {
		case kindAnswer:
			return f.payload, nil
		case kindBusy:
			return nil, claimlog.ErrBusy
		}
		return nil, fmt.Errorf("%w: kind %d to a request", errFrame, f.kind)
	case <-l.ended:
		l.forget(number)
		return nil, l.why
	case <-ctx.Done():
		l.forget(number)
		_ = out.send(frame{kind: kindCancel, number: number})
		return nil, context.Cause(ctx)
	}
}

func (l *link) forget(number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, number)
}

// writer sends whole frames. A connection whose other side takes nothing is closed.
type writer struct {
	mu     sync.Mutex
	conn   net.Conn
	memory []byte
}

func (w *writer) send(f frame) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.memory = f.append(w.memory[:0])
	err := w.writeLocked(w.memory)
	if cap(w.memory) > 1<<20 {
		w.memory = nil
	}
	return err
}

func (w *writer) write(data []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writeLocked(data)
}

func (w *writer) writeLocked(data []byte) error {
	err := w.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	if err == nil {
		_, err = w.conn.Write(data)
	}
	if err != nil {
		w.conn.Close()
	}
	return err
}
