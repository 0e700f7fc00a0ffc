package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// openedConn tells its entrance what becomes of it.
type openedConn struct {
	net.Conn
	entrance *entrance
	working  *atomic.Bool // of its client: one of its connections was accepted
	ended    atomic.Bool
}

func (c *openedConn) end(o outcome) {
	if c.ended.CompareAndSwap(false, true) {
		c.entrance.leave(o)
	}
}

// Read implements net.Conn.
func (c *openedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.working.Store(true)
		c.end(isAccepted)
	}
	if err != nil {
		c.end(isRefused)
	}
	return n, err
}

// Close implements net.Conn.
func (c *openedConn) Close() error {
	c.end(isUnknown)
	return c.Conn.Close()
}

// ask asks for the versions that the broker knows, in their oldest form, and returns when it has
// answered.
func (c *openedConn) ask(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Now()) })
	defer stop()
	_ = c.SetDeadline(time.Now().Add(dialTimeout))
	// key 18, version 0, correlation ID 0, no client ID
	request := []byte{0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 0, 0xff, 0xff}
	if _, err := c.Write(request); err != nil {
		return err
	}
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > largestVersions {
		return errNotKafka
	}
	if _, err := io.CopyN(io.Discard, c, int64(n)); err != nil {
		return err
	}
	return c.SetDeadline(time.Time{})
}

// largestVersions is more bytes than the versions of all requests take.
const largestVersions = 1 << 16

// errNotKafka is about an answer of another protocol, as a listener with TLS gives.
var errNotKafka = errors.New("no answer of a Kafka broker")
