package server

import (
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync"
)

// mostConnections are enough for a few people, a few scrapers and probes.
const mostConnections = 64

// connections closes the connection that has waited the longest for a request when there are too
// many. So clients that hold theirs open cannot take all descriptors of the process, which the
// store and the brokers need, nor keep a probe out. Those that a request is answered on end by
// their timeouts.
type connections struct {
	most int

	mu      sync.Mutex
	open    map[net.Conn]struct{}
	waiting []net.Conn // in the order in which they began to
}

func newConnections(most int) *connections {
	return &connections{most: most, open: make(map[net.Conn]struct{})}
}

// changed is http.Server.ConnState.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew, http.StateIdle:
		c.open[conn] = struct{}{}
		c.waiting = append(c.waiting, conn)
		c.closeOneLocked()
	case http.StateActive:
		c.forgetLocked(conn)
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
		c.forgetLocked(conn)
	}
}

// closeOneLocked leaves the last one alone: it has only just come.
func (c *connections) closeOneLocked() {
	if len(c.open) <= c.most || len(c.waiting) < 2 {
		return
	}
	oldest := c.waiting[0]
	c.waiting = c.waiting[1:]
	delete(c.open, oldest)
	if secure, ok := oldest.(*tls.Conn); ok {
		oldest = secure.NetConn() // without a farewell, for which a client could keep us waiting
	}
	_ = oldest.Close() // the server notices
}

func (c *connections) forgetLocked(conn net.Conn) {
	c.waiting = slices.DeleteFunc(c.waiting, func(other net.Conn) bool { return other == conn })
}
