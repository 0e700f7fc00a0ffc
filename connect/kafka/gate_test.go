package kafka

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// door is a broker that admits connections at a rate, closes those beyond after a while or lets
// them wait, and answers what it has admitted.
type door struct {
	every   time.Duration // between two that it admits
	refuses bool          // else they wait

	mu       sync.Mutex
	next     time.Time
	admitted int
	refused  int
	pending  int // connections that wait for their admission
	most     int // of them
}

func (d *door) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if d.refuses && now.Before(d.next) {
		d.refused++
		time.AfterFunc(100*time.Millisecond, func() { _ = server.Close() })
		return client, nil
	}
	if d.next.Before(now) {
		d.next = now
	}
	at := d.next
	d.next = d.next.Add(d.every)
	d.pending++
	d.most = max(d.most, d.pending)
	time.AfterFunc(at.Sub(now)+time.Millisecond, func() {
		d.mu.Lock()
		d.pending--
		d.admitted++
		d.mu.Unlock()
		_, _ = server.Write([]byte("answer"))
	})
	return client, nil
}

// open has a client open n connections, one after the other, each again until it is there.
func open(t *testing.T, g *gate, d *door, n int) {
	dial := g.client(false, d.dial)
	for range n {
		for {
			conn, err := dial(t.Context(), "tcp", "broker:9092")
			if err != nil {
				t.Error(err)
				return
			}
			if _, err = conn.Read(make([]byte, 10)); err == nil {
				break
			}
			if !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			_ = conn.Close()
		}
	}
}

// Whatever a broker admits, and whatever it does with the others, all connections are there in
// about the time that they need, and few are tried in vain.
func TestConnectionsAreOpenedAsFastAsTheyAreAccepted(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		synctest.Test(t, func(t *testing.T) {
			d := &door{every: time.Duration(1+r.IntN(1000)) * time.Millisecond,
				refuses: r.IntN(2) == 0}
			g, clients, each := newGate(), 5+r.IntN(40), 1+r.IntN(4)
			began := time.Now()
			var all sync.WaitGroup
			for range clients {
				all.Go(func() { open(t, g, d, each) })
			}
			all.Wait()
			took, n := time.Since(began), clients*each
			least := time.Duration(n-1) * d.every
			if took > 3*least+time.Duration(n)*400*time.Millisecond {
				t.Errorf("seed %d: %d connections took %s, one each %s", seed, n, took, d.every)
			}
			if d.admitted != n || d.refused > 2*n+10 || d.most > mostOpening {
				t.Errorf("seed %d: %d of %d connections were admitted, %d refused, %d at a time "+
					"waited", seed, d.admitted, n, d.refused, d.most)
			}
		})
	}
}

// A client that is at work gets its further connections before others get their first: its
// heartbeats wait behind them.
func TestAClientThatHasAConnectionGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, g := &door{every: time.Second}, newGate()
		g.places["broker:9092"] = &entrance{gate: g, most: 1, pause: leastRefusalPause}
		working := g.client(false, d.dial)
		conn, err := working(t.Context(), "tcp", "broker:9092")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Read(make([]byte, 10))
		var others sync.WaitGroup
		for range 30 {
			others.Go(func() { open(t, g, d, 1) })
		}
		synctest.Wait()
		began := time.Now()
		if conn, err = working(t.Context(), "tcp", "broker:9092"); err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Read(make([]byte, 10))
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("a client with a connection waited %s for its second", took)
		}
		others.Wait()
	})
}

// Who gives up leaves its turn to others, and is told what it waited for.
func TestWhoGivesUpLeavesItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, g := &door{every: time.Hour}, newGate()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				conn, err := g.client(false, d.dial)(ctx, "tcp", "broker:9092")
				if err == nil {
					_ = conn.Close()
				} else if !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if e := g.places["broker:9092"]; e.opening != 0 || len(e.waiters) != 0 {
			t.Errorf("%d are opening, %d wait", e.opening, len(e.waiters))
		}
	})
}

// A listener with TLS answers a plain connection with an alert, and closes it. The client hears of
// it, and tells what that means.
func TestAnAnswerOfAnotherProtocolIsTheClientsToHear(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	alert := []byte{0x15, 0x03, 0x03, 0, 2, 2, 70}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write(alert)
			_ = conn.Close()
		}
	}()
	dial := newGate().client(true, (&net.Dialer{}).DialContext)
	for range 3 {
		conn, err := dial(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 100)
		if n, _ := conn.Read(got); string(got[:n]) != string(alert) {
			t.Errorf("the client hears % x", got[:n])
		}
		_ = conn.Close()
	}
}
