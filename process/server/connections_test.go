package server_test

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/process/server"
)

func TestConnectionsThatAskNothingKeepNobodyOut(t *testing.T) {
	url := start(t, options())
	var idle []net.Conn
	for i := range 200 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if i%2 == 0 { // the others have asked something before
			if _, err := conn.Write(
				[]byte("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"),
			); err != nil {
				t.Fatal(err)
			}
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
		}
		idle = append(idle, conn)
	}
	if status, _ := get(t, url+"/healthz"); status != http.StatusOK {
		t.Errorf("/healthz: %d", status)
	}
	testkit.Eventually(t, 10*time.Second, "few of 200 connections are left", func() bool {
		open := 0
		for _, conn := range idle {
			_ = conn.SetReadDeadline(time.Now().Add(time.Millisecond))
			_, err := conn.Read(make([]byte, 1))
			if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
				open++
			}
		}
		return open <= 64
	})
}

func TestWhoeverAsksForReadinessOftenAsksTheStoreOnce(t *testing.T) {
	var asked atomic.Int32
	o := options()
	o.Checks = fixed(server.Check{Name: "store", Func: func(context.Context) error {
		asked.Add(1)
		return nil
	}})
	url := start(t, o)
	for range 50 {
		get(t, url+"/readyz")
	}
	if n := asked.Load(); n > 10 { // once a second, and once for the page
		t.Errorf("50 requests, and the store was asked %d times", n)
	}
}
