//go:build crashpoints

package crashpoint

import (
	"context"
	"encoding/binary"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Hooks returns the options of a Kafka client that make the moments of its requests points. They
// dial without TLS.
func Hooks() []kgo.Opt {
	dialer := net.Dialer{Timeout: 10 * time.Second}
	return []kgo.Opt{
		kgo.WithHooks(exchange{}),
		kgo.Dialer(func(ctx context.Context, network, host string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, host)
			if err != nil {
				return nil, err
			}
			return conn{c}, nil
		}),
	}
}

// exchange is told of a request after it was written, and of its answer after that was read.
type exchange struct{}

// OnBrokerWrite implements kgo.HookBrokerWrite.
func (exchange) OnBrokerWrite(
	_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error,
) {
	if err == nil {
		at(key, sent)
	}
}

// OnBrokerRead implements kgo.HookBrokerRead.
func (exchange) OnBrokerRead(
	_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error,
) {
	if err == nil {
		at(key, answered)
	}
}

// conn sees a request before it is written, which no hook does. The client writes each at once.
type conn struct{ net.Conn }

// Write implements net.Conn. A request begins with its length in four bytes, then comes its key.
func (c conn) Write(b []byte) (int, error) {
	if len(b) >= 6 {
		at(int16(binary.BigEndian.Uint16(b[4:])), unsent)
	}
	return c.Conn.Write(b)
}

func at(key int16, moment string) {
	if request, ok := requests[key]; ok {
		At(request + moment)
	}
}
