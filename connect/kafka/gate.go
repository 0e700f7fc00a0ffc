package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// gate has the clients of a process open connections no faster than brokers accept them. A broker
// may admit few new ones a second, and it closes those beyond, or lets them wait: who opens all at
// once, and again after each refusal, gets none of them for long.
//
// A connection is accepted when something was read from it. How many may wait for that at a time
// grows while they are accepted, and falls when they are not. A client that has a connection goes
// first: it is at work, and its heartbeats wait behind the connection that it opens.
type gate struct {
	mu     sync.Mutex
	places map[string]*entrance // by the broker's address
}

func newGate() *gate { return &gate{places: make(map[string]*entrance)} }

// entrance is that of one broker.
type entrance struct {
	gate    *gate
	opening int // connections that are not accepted yet
	most    int // of them at a time
	closed  bool
	pause   time.Duration // after the next refusal
	// one was accepted: whoever never accepts any has other reasons than their number
	accepted bool
	waiters  []*waiter
}

type waiter struct {
	later bool // the client has no connection yet
	turn  chan struct{}
}

const (
	mostOpening = 8
	// slowAnswer is when a connection counts as open though nothing was read from it: the first
	// request may be one that the broker answers late.
	slowAnswer = 2 * time.Second

	leastRefusalPause = 250 * time.Millisecond
	mostRefusalPause  = 5 * time.Second
)

// dialer opens a connection.
type dialer func(ctx context.Context, network, host string) (net.Conn, error)

// client returns the dialer of one client. With asks it finds out itself whether a connection is
// admitted, and tries again: a client would take the refusal for an answer to what it asks first.
// Before a login there is nothing that it may ask.
func (g *gate) client(asks bool, dial dialer) dialer {
	working := new(atomic.Bool)
	return func(ctx context.Context, network, host string) (net.Conn, error) {
		for ask := asks; ; {
			e, err := g.enter(ctx, host, !working.Load())
			if err != nil {
				return nil, err
			}
			known := e.known()
			opened, err := e.dial(ctx, dial, network, host, working)
			if err != nil {
				return nil, err
			}
			if !ask || !known {
				return opened, nil
			}
			if err = opened.ask(ctx); err == nil {
				return opened, nil
			}
			_ = opened.Close()
			if errors.Is(err, errNotKafka) {
				ask = false // the client knows better what to say of it
				continue
			}
			if ctx.Err() != nil || !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
				return nil, err
			}
		}
	}
}

func (e *entrance) dial(
	ctx context.Context, dial dialer, network, host string, working *atomic.Bool,
) (*openedConn, error) {
	conn, err := dial(ctx, network, host)
	switch {
	case err == nil:
		opened := &openedConn{Conn: conn, entrance: e, working: working}
		time.AfterFunc(slowAnswer, func() { opened.end(isSlow) })
		return opened, nil
	case ctx.Err() != nil, errors.Is(err, syscall.ECONNREFUSED), os.IsTimeout(err):
		e.leave(isUnknown) // nobody is there, or the client does not want it any more
	default:
		e.leave(isRefused)
	}
	return nil, err
}

// known reports whether the broker has accepted a connection before.
func (e *entrance) known() bool {
	e.gate.mu.Lock()
	defer e.gate.mu.Unlock()
	return e.accepted
}

// enter waits for the turn of a connection.
func (g *gate) enter(ctx context.Context, host string, later bool) (*entrance, error) {
	g.mu.Lock()
	e := g.places[host]
	if e == nil {
		e = &entrance{gate: g, most: mostOpening, pause: leastRefusalPause}
		g.places[host] = e
	}
	w := &waiter{later: later, turn: make(chan struct{})}
	at := len(e.waiters)
	if !later {
		at = slices.IndexFunc(e.waiters, func(w *waiter) bool { return w.later })
		if at < 0 {
			at = len(e.waiters)
		}
	}
	e.waiters = slices.Insert(e.waiters, at, w)
	e.admitLocked()
	g.mu.Unlock()
	select {
	case <-w.turn:
		return e, nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if at := slices.Index(e.waiters, w); at >= 0 {
		e.waiters = slices.Delete(e.waiters, at, at+1)
	} else { // its turn came at the same moment
		e.opening--
		e.admitLocked()
	}
	return nil, fmt.Errorf("wait for the turn to connect to %s, which accepts connections slowly: "+
		"%w", host, context.Cause(ctx))
}

func (e *entrance) admitLocked() {
	for !e.closed && e.opening < e.most && len(e.waiters) > 0 {
		close(e.waiters[0].turn)
		e.waiters = slices.Delete(e.waiters, 0, 1)
		e.opening++
	}
}

// outcome is what became of a connection that was opened.
type outcome uint8

const (
	isAccepted outcome = iota
	isSlow             // it is there, and nothing was read yet
	isRefused          // it was closed before anything was read
	isUnknown
)

func (e *entrance) leave(o outcome) {
	e.gate.mu.Lock()
	defer e.gate.mu.Unlock()
	e.opening--
	switch o {
	case isAccepted:
		e.accepted = true
		if e.pause = max(e.pause/2, leastRefusalPause); e.pause == leastRefusalPause {
			e.most = min(2*e.most, mostOpening)
		}
	case isSlow:
		e.most = max(1, e.most/2)
	case isRefused:
		if !e.accepted {
			break
		}
		e.most = 1
		if !e.closed {
			e.closed = true
			time.AfterFunc(e.pause, e.open)
			e.pause = min(2*e.pause, mostRefusalPause)
		}
	}
	e.admitLocked()
}

func (e *entrance) open() {
	e.gate.mu.Lock()
	defer e.gate.mu.Unlock()
	e.closed = false
	e.admitLocked()
}
