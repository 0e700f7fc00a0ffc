package servers

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
)

func TestProbeCassandraSaysWhatIsWrong(t *testing.T) {
	ready, result := cqlFrame(cqlReady, ""), cqlFrame(cqlResult, "\x00\x00\x00\x01")
	for name, test := range map[string]struct {
		answers []string
		want    string // in the error; empty means none
	}{
		"a node that answers":             {[]string{ready, result}, ""},
		"a node that closes":              {nil, "cql startup: EOF"},
		"a node that closes in an answer": {[]string{ready, result[:10]}, "unexpected EOF"},
		"a node that refuses to start": {[]string{cqlFrame(cqlError,
			"\x00\x00\x10\x01\x00\x04busy")}, "server error 0x1001: busy"},
		"a query that fails": {[]string{ready,
			cqlFrame(cqlError, "\x00\x00\x10\x00\x00\x09not alive")},
			"SELECT key FROM system.local\": server error 0x1000: not alive"},
		"an error without its message": {[]string{cqlFrame(cqlError, "\x00")},
			"error without a message"},
		"a message shorter than it says": {[]string{cqlFrame(cqlError,
			"\x00\x00\x00\x0a\xff\xffbad")}, "server error 0x000a: bad"},
		"something else that listens": {[]string{"HTTP/1.1 400 Bad Request\r\n"},
			`no native protocol: the first bytes are "HTTP/1.1 "`},
		"an endless answer": {[]string{"\x84\x00\x00\x00\x02\xff\xff\xff\xff"},
			"answer of 4294967295 bytes"},
		"a node that lets us in": {[]string{cqlFrame(cqlWhoIs, "\x00\x00"),
			cqlFrame(cqlLoggedIn, "\xff\xff\xff\xff"), result}, ""},
		"a node that keeps us out": {[]string{cqlFrame(cqlWhoIs, "\x00\x00"),
			cqlFrame(cqlError, "\x00\x00\x01\x00\x00\x02no")},
			"cql startup: server error 0x0100: no"},
		"an answer to another question": {[]string{cqlFrame(cqlResult, "")},
			"answer with opcode 0x8 instead of 0x2"},
	} {
		t.Run(name, func(t *testing.T) {
			err := probeCassandra(t.Context(), listenCQL(t, test.answers...))
			if test.want == "" && err != nil {
				t.Fatalf("got %v", err)
			}
			if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Fatalf("got %v, want …%s…", err, test.want)
			}
		})
	}
}

func FuzzReadCQL(f *testing.F) {
	f.Add([]byte(cqlFrame(cqlReady, "")))
	f.Add([]byte(cqlFrame(cqlError, "\x00\x00\x00\x0a\x00\x03bad")))
	f.Fuzz(func(t *testing.T, answer []byte) {
		opcode, body, err := readCQL(bytes.NewReader(answer))
		if err == nil && opcode == cqlError && answerError(body) == nil {
			t.Fatal("an ERROR answer is no error")
		}
	})
}

func cqlFrame(opcode byte, body string) string {
	frame := binary.BigEndian.AppendUint32([]byte{cqlVersion4 | 0x80, 0, 0, 0, opcode},
		uint32(len(body)))
	return string(frame) + body
}

// listenCQL answers each request of one connection with the next answer, and closes after the last.
func listenCQL(t *testing.T, answers ...string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		serveCQL(l, answers...)
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return l.Addr().String()
}

// serveCQL answers one connection after the other until the listener is closed.
func serveCQL(l net.Listener, answers ...string) {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			panic(err)
		}
		for _, answer := range answers {
			if _, _, err := readCQL(conn); err != nil {
				break
			}
			if _, err := io.WriteString(conn, answer); err != nil {
				break
			}
		}
		if tcp, ok := conn.(*net.TCPConn); ok && len(answers) == 0 {
			_, _, _ = readCQL(tcp) // a close with unread bytes would be a reset, not an end
		}
		conn.Close()
	}
}
