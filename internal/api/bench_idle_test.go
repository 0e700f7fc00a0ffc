package api

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
)

// Frames of HTTP/2: a client's preface with its settings, and a request for /healthz.
const (
	http2Settings = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	http2Request  = "\x00\x00\x17\x01\x05\x00\x00\x00\x01\x82\x86" +
		"\x04\x08/healthz\x01\x09localhost"
)

// BenchmarkIdleConnections tells what connections take that wait, of a server that is a process of
// its own: by how much its resident memory grows.
func BenchmarkIdleConnections(b *testing.B) {
	const connections = 10_000
	for _, kind := range []struct{ name, hello, until string }{
		{"HTTP1 asked once", "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", "ok\n"},
		{"HTTP2 never asked", http2Settings, "\x00\x00\x00\x04\x01"}, // settings acknowledged
		{"HTTP2 asked once", http2Settings + http2Request, "ok\n"},
	} {
		b.Run(kind.name, func(b *testing.B) {
			for b.Loop() {
				process, url := startServer(b, b.TempDir())
				before := resident(b, process.Process.Pid)
				var open []net.Conn
				for range connections {
					conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
					if err == nil {
						_, err = fmt.Fprint(conn, kind.hello)
					}
					if err != nil {
						b.Fatal(err)
					}
					open = append(open, conn)
					readUntil(b, conn, kind.until)
				}
				grown := resident(b, process.Process.Pid) - before
				b.ReportMetric(float64(grown)/connections, "KiB/connection")
				for _, conn := range open {
					_ = conn.Close()
				}
				_ = process.Process.Kill()
				_ = process.Wait()
			}
		})
	}
}

func readUntil(b *testing.B, conn net.Conn, end string) {
	var got []byte
	for part := make([]byte, 512); !strings.Contains(string(got), end); {
		n, err := conn.Read(part)
		if err != nil {
			b.Fatalf("%v after %q", err, got)
		}
		got = append(got, part[:n]...)
	}
}

// resident is the memory of a process, in KiB.
func resident(b *testing.B, pid int) (kib int) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Skip(err)
	}
	_, line, _ := strings.Cut(string(status), "VmRSS:")
	if _, err := fmt.Sscan(line, &kib); err != nil {
		b.Fatal(err)
	}
	return kib
}
