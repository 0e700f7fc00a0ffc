package testkit_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/kdedup/kdedup/internal/testkit"
)

// echo answers each line, and tells which it has read.
func echo(t *testing.T) (addr string, read <-chan string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 10)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			for in := bufio.NewScanner(conn); in.Scan(); {
				lines <- in.Text()
				_, _ = conn.Write([]byte(in.Text() + "\n"))
			}
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	return listener.Addr().String(), lines
}

type caller struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Scanner
}

func call(t *testing.T, p *testkit.Proxy) *caller {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return &caller{t, conn, bufio.NewScanner(conn)}
}

func (c *caller) send(line string) {
	c.t.Helper()
	if _, err := c.conn.Write([]byte(line + "\n")); err != nil {
		c.t.Fatal(err)
	}
}

// hears is false when the connection ends.
func (c *caller) hears(line string) bool { return c.in.Scan() && c.in.Text() == line }

func want(t *testing.T, read <-chan string, line string) {
	t.Helper()
	select {
	case got := <-read:
		if got != line {
			t.Errorf("the server read %q, want %q", got, line)
		}
	case <-time.After(time.Minute):
		t.Fatalf("the server did not read %q", line)
	}
}

func TestAProxyMakesTheTroubleItIsToldTo(t *testing.T) {
	for _, c := range []struct {
		trouble testkit.Trouble
		reads   bool // the server
		hears   bool // the client
	}{
		{testkit.NoTrouble, true, true},
		{testkit.LateAnswers, true, true},
		{testkit.LateRequests, true, true},
		{testkit.LostAnswers, true, false},
		{testkit.BrokenAnswers, true, false},
		{testkit.NoConnections, false, false},
	} {
		t.Run(c.trouble.String(), func(t *testing.T) {
			addr, read := echo(t)
			p := testkit.StartProxy(t, addr)
			p.Make(c.trouble, 20*time.Millisecond)
			client := call(t, p)
			client.send("a")
			if c.reads {
				want(t, read, "a")
			}
			if c.trouble == testkit.LostAnswers {
				p.Make(testkit.NoTrouble, 0) // and the connection goes
			}
			if client.hears("a") != c.hears {
				t.Errorf("the client heard an answer: %t", !c.hears)
			}
		})
	}
}

func TestALateRequestArrivesWhenItsClientHasGone(t *testing.T) {
	addr, read := echo(t)
	p := testkit.StartProxy(t, addr)
	p.Make(testkit.LateRequests, 200*time.Millisecond)
	client := call(t, p)
	client.send("a")
	_ = client.conn.Close()
	want(t, read, "a")
}

func TestConnectionsAreCutOnce(t *testing.T) {
	addr, read := echo(t)
	p := testkit.StartProxy(t, addr)
	first := call(t, p)
	first.send("a")
	want(t, read, "a")
	p.Make(testkit.CutConnections, 0)
	second := call(t, p)
	second.send("b")
	if want(t, read, "b"); !second.hears("b") {
		t.Error("the second connection is cut")
	}
	if _, err := io.ReadAll(first.conn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the first connection is not cut")
	}
}
