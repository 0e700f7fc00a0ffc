package kafka

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

func TestABrokerThatIsDownIsToldOnceAndItsReturnToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text testkit.Printed
		s := newSight(slog.New(slog.NewTextHandler(&text, nil)))
		one, two := kgo.BrokerMetadata{Host: "one", Port: 9092},
			kgo.BrokerMetadata{Host: "two", Port: 9092}
		seedOfOne := kgo.BrokerMetadata{NodeID: -5, Host: "one", Port: 9092}
		for range 30 {
			s.OnBrokerConnect(one, 0, nil, errors.New("refused"))
			s.OnBrokerConnect(seedOfOne, 0, nil, errors.New("refused"))
			s.OnBrokerConnect(two, 0, nil, nil)
			s.OnBrokerConnect(two, 0, nil, context.Canceled)
			time.Sleep(time.Second)
		}
		s.OnBrokerConnect(one, 0, nil, nil)
		s.OnBrokerConnect(seedOfOne, 0, nil, nil)
		lines := strings.Split(strings.TrimSpace(text.String()), "\n")
		if len(lines) != 2 ||
			!strings.Contains(lines[0], `level=WARN msg="a broker cannot be reached, trying again" `+
				`broker=one:9092 error=refused`) ||
			!strings.Contains(lines[1], `level=INFO msg="the broker can be reached again" `+
				`broker=one:9092 after=30s`) {
			t.Errorf("%q", lines)
		}
	})
}

// The client writes a line for each attempt.
func TestLinesOfSingleAttemptsAreForDebugging(t *testing.T) {
	var text testkit.Printed
	log := demote(slog.New(slog.NewTextHandler(io.Writer(&text), nil)))
	log.Warn("unable to open connection to broker", "addr", "one:9092")
	log.Warn("read from broker errored, killing connection after 0 successful responses (is SASL " +
		"missing?)")
	log.Error("group manage loop errored", "group", "orders-dedup")
	log.Warn("member was assigned topic that we did not ask for")
	if got := text.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "assigned") {
		t.Error(got)
	}
}
