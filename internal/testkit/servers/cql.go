package servers

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
)

// The part of Cassandra's native protocol, version 4, that asks whether a node answers queries.
// A driver would do, but its pools and events outlive a node's restart in their own way.
const (
	cqlVersion4 = 0x04
	cqlError    = 0x00
	cqlStartup  = 0x01
	cqlReady    = 0x02
	cqlWhoIs    = 0x03 // AUTHENTICATE
	cqlQuery    = 0x07
	cqlResult   = 0x08
	cqlLogin    = 0x0f // AUTH_RESPONSE
	cqlLoggedIn = 0x10 // AUTH_SUCCESS

	cqlConsistencyOne = 0x0001
	cqlConsistencyAll = 0x0005

	cqlHeader   = 9       // version, flags, stream (2 bytes), opcode, length of the body (4 bytes)
	cqlMaxFrame = 1 << 20 // the answers here have a few hundred bytes
)

// probeCassandra asks the node about itself.
func probeCassandra(ctx context.Context, addr string) error {
	_, err := queryCQL(ctx, addr, "SELECT key FROM system.local", cqlConsistencyOne)
	return err
}

// queryCQL runs one statement over a connection of its own and returns the body of the RESULT.
func queryCQL(ctx context.Context, addr, statement string, consistency uint16) ([]byte, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return nil, err
		}
	}
	if err := startCQL(conn); err != nil {
		return nil, fmt.Errorf("cql startup: %w", err)
	}
	result, err := callCQL(conn, cqlQuery, queryBody(statement, consistency), cqlResult)
	if err != nil {
		return nil, fmt.Errorf("cql %q: %w", statement, err)
	}
	return result, nil
}

// startCQL logs in where the node asks for it, as the superuser of a new node.
func startCQL(conn io.ReadWriter) error {
	got, _, err := exchangeCQL(conn, cqlStartup, startupBody())
	switch {
	case err != nil:
		return err
	case got == cqlReady:
		return nil
	case got != cqlWhoIs:
		return fmt.Errorf("answer with opcode %#x instead of %#x", got, cqlReady)
	}
	token := "\x00" + CassandraSuperuser + "\x00" + CassandraSuperuser
	body := append(binary.BigEndian.AppendUint32(nil, uint32(len(token))), token...)
	_, err = callCQL(conn, cqlLogin, body, cqlLoggedIn)
	return err
}

func startupBody() []byte {
	body := binary.BigEndian.AppendUint16(nil, 1) // pairs in the map
	body = appendShortString(body, "CQL_VERSION")
	return appendShortString(body, "3.0.0")
}

func queryBody(statement string, consistency uint16) []byte {
	body := binary.BigEndian.AppendUint32(nil, uint32(len(statement)))
	body = append(body, statement...)
	body = binary.BigEndian.AppendUint16(body, consistency)
	return append(body, 0) // no flags, hence no values
}

func appendShortString(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(s)))
	return append(b, s...)
}

// callCQL sends one request and returns the answer's body; an answer other than want is an error.
func callCQL(conn io.ReadWriter, opcode byte, body []byte, want byte) ([]byte, error) {
	got, answer, err := exchangeCQL(conn, opcode, body)
	if err == nil && got != want {
		err = fmt.Errorf("answer with opcode %#x instead of %#x", got, want)
	}
	return answer, err
}

func exchangeCQL(
	conn io.ReadWriter, opcode byte, body []byte,
) (got byte, answer []byte, err error) {
	frame := []byte{cqlVersion4, 0, 0, 0, opcode}
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(body)))
	if _, err := conn.Write(append(frame, body...)); err != nil {
		return 0, nil, err
	}
	got, answer, err = readCQL(conn)
	if err == nil && got == cqlError {
		return 0, nil, answerError(answer)
	}
	return got, answer, err
}

func readCQL(r io.Reader) (opcode byte, body []byte, err error) {
	var header [cqlHeader]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return 0, nil, err
	}
	if header[0]&0x7f != cqlVersion4 { // the highest bit marks an answer
		return 0, nil, fmt.Errorf("no native protocol: the first bytes are %q", header)
	}
	length := binary.BigEndian.Uint32(header[5:])
	if length > cqlMaxFrame {
		return 0, nil, fmt.Errorf("answer of %d bytes", length)
	}
	body = make([]byte, length)
	_, err = io.ReadFull(r, body)
	return header[4], body, err
}

// answerError reads an ERROR body: a code and a message.
func answerError(body []byte) error {
	if len(body) < 6 {
		return errors.New("error without a message")
	}
	code := binary.BigEndian.Uint32(body)
	end := min(len(body), 6+int(binary.BigEndian.Uint16(body[4:])))
	return fmt.Errorf("server error %#04x: %s", code, body[6:end])
}
