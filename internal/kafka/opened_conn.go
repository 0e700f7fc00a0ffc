package kafka

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// ownConns are those of one client. franz-go has up to five to each broker, and one to the first
// that it asked, and closes none before it was idle for a while. In a process with many lanes most
// of them are idle, so two kinds are closed at once: the one on which the client has joined its
// group, and the one to the broker that it asked first, when it has another to the same place. The
// client opens a connection again that it needs.
type ownConns struct {
	some   atomic.Bool // the client has had a connection
	lane   bool        // the client is that of a lane, whose idle connections are closed
	mu     sync.Mutex
	others map[string]*openedConn // for requests of no special kind, the last by place
}

const (
	// How long a connection of these kinds is kept after an answer: the next request mostly follows
	// at once.
	groupIdle = time.Second
	firstIdle = 250 * time.Millisecond
)

// openedConn tells its entrance what becomes of it.
type openedConn struct {
	net.Conn
	host     string
	entrance *entrance
	own      *ownConns
	ended    atomic.Bool

	mu      sync.Mutex
	known   bool          // what it is for
	waits   bool          // for an answer
	idle    time.Duration // after which it is closed; 0: never
	closing *time.Timer
}

func (c *openedConn) end(o outcome) {
	if c.ended.CompareAndSwap(false, true) {
		c.entrance.leave(o)
	}
}

// ask asks for the versions that the broker knows, in their oldest form, and returns when it has
// answered.
func (c *openedConn) ask(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Now()) })
	defer stop()
	_ = c.SetDeadline(time.Now().Add(dialTimeout))
	// key 18, version 0, correlation ID 0, no client ID
	request := []byte{0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 0, 0xff, 0xff}
	if _, err := c.Conn.Write(request); err != nil {
		return err
	}
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return err
	}
	if _, err := io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(size[:]))); err != nil {
		return err
	}
	return c.SetDeadline(time.Time{})
}

// Read implements net.Conn.
func (c *openedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.own.some.Store(true)
		c.end(isAccepted)
		c.mu.Lock()
		c.waits = false
		c.restLocked()
		c.mu.Unlock()
	}
	if err != nil {
		c.end(isRefused)
	}
	return n, err
}

// Write implements net.Conn.
func (c *openedConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	c.waits = true
	if c.closing != nil {
		c.closing.Stop()
	}
	if key := requestKey(b); c.own.lane && !c.known && !slices.Contains(opening, key) {
		c.known = true
		defer c.asks(key)
	}
	c.mu.Unlock()
	return c.Conn.Write(b)
}

// opening are requests with which every connection may begin.
var opening = []kmsg.Key{kmsg.ApiVersions, kmsg.SASLHandshake, kmsg.SASLAuthenticate}

// requestKey is that of a request that begins with these bytes.
func requestKey(b []byte) kmsg.Key {
	if len(b) < 6 {
		return kmsg.ApiVersions
	}
	return kmsg.Key(binary.BigEndian.Uint16(b[4:]))
}

// asks is told the first request that tells what the connection is for.
func (c *openedConn) asks(key kmsg.Key) {
	switch {
	case key == kmsg.JoinGroup || key == kmsg.SyncGroup:
		c.closeAfter(groupIdle)
	case slices.Contains([]kmsg.Key{kmsg.Produce, kmsg.Fetch}, key):
	default:
		c.own.mu.Lock()
		before := c.own.others[c.host]
		c.own.others[c.host] = c
		c.own.mu.Unlock()
		if before != nil {
			before.closeAfter(firstIdle)
		}
	}
}

func (c *openedConn) closeAfter(idle time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = idle
	c.restLocked()
}

// restLocked begins the time after which an idle connection is closed.
func (c *openedConn) restLocked() {
	if c.idle == 0 || c.waits {
		return
	}
	if c.closing == nil {
		c.closing = time.AfterFunc(c.idle, c.closeIdle)
		return
	}
	c.closing.Reset(c.idle)
}

func (c *openedConn) closeIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.waits && !c.entrance.scarce() {
		_ = c.Conn.Close()
	}
}

// Close implements net.Conn.
func (c *openedConn) Close() error {
	c.end(isUnknown)
	c.mu.Lock()
	if c.closing != nil {
		c.closing.Stop()
	}
	c.mu.Unlock()
	c.own.mu.Lock()
	if c.own.others[c.host] == c {
		delete(c.own.others, c.host)
	}
	c.own.mu.Unlock()
	return c.Conn.Close()
}
