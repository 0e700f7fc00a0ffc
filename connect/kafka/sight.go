package kafka

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// sight tells when a broker cannot be reached, and when it can again: once for all clients of a
// process, each of which tries it again and again.
type sight struct {
	log *slog.Logger

	mu   sync.Mutex
	gone map[string]time.Time // since when, by address
}

var _ kgo.HookBrokerConnect = (*sight)(nil)

func newSight(log *slog.Logger) *sight {
	return &sight{log: log, gone: make(map[string]time.Time)}
}

// OnBrokerConnect hears of each connection that was opened and logged in, or was not.
func (s *sight) OnBrokerConnect(broker kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, kgo.ErrClientClosed) {
		return // the client was closed meanwhile
	}
	address := net.JoinHostPort(broker.Host, strconv.Itoa(int(broker.Port)))
	s.mu.Lock()
	defer s.mu.Unlock()
	since, gone := s.gone[address]
	switch {
	case err != nil && !gone:
		s.gone[address] = time.Now()
		s.log.Warn("a broker cannot be reached, trying again", "broker", address, "error", err)
	case err == nil && gone:
		delete(s.gone, address)
		s.log.Info("the broker can be reached again", "broker", address,
			"after", time.Since(since).Round(time.Millisecond))
	}
}
