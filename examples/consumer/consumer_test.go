package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheCommandsOfTheReadmeDoWhatItSays(t *testing.T) {
	testkit.RunReadme(t, "../..", testkit.ReadmeCommands(t))
}

// warehouse counts what is shipped.
type warehouse struct {
	shipped map[string]int
	fails   int // in how many orders
}

var errBroken = errors.New("the van broke down")

func (w *warehouse) ship(_ context.Context, order *kgo.Record) error {
	if w.fails--; w.fails == 0 {
		return errBroken
	}
	w.shipped[string(order.Headers[0].Value)]++
	return nil
}

// shipTheRest runs consumers of one batch each until every order was shipped.
func (w *warehouse) shipTheRest(t *testing.T, s settings) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s.records = 1 // and what else is in its batch
	for len(w.shipped) < demoOrders {
		if err := errors.Join(run(ctx, s, w.ship), ctx.Err()); err != nil {
			t.Fatalf("%d orders were shipped: %v", len(w.shipped), err)
		}
	}
}

func start(t *testing.T) settings {
	t.Helper()
	_, brokers := testkit.FakeKafka(t)
	s := settings{
		brokers: brokers, group: "shipping", header: "message-id", ttl: time.Hour,
		data:  t.TempDir(),
		topic: testkit.Topic(t, brokers, "orders", demoPartitions, nil),
	}
	if err := produceOrders(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEveryOrderIsShippedOnce(t *testing.T) {
	s := start(t)
	s.records = demoOrders + demoCopies
	w := &warehouse{shipped: make(map[string]int)}
	if err := run(t.Context(), s, w.ship); err != nil {
		t.Fatal(err)
	}
	for id, n := range w.shipped {
		if n != 1 {
			t.Errorf("%s was shipped %d times", id, n)
		}
	}
	if len(w.shipped) != demoOrders {
		t.Errorf("%d orders were shipped, want %d", len(w.shipped), demoOrders)
	}
}

// The consumer ends in the middle of a batch: every order of that batch was claimed, some were
// shipped, and nothing was committed.
func TestAConsumerThatDiesInABatchLosesNothing(t *testing.T) {
	s := start(t)
	const before = batchRecords + batchRecords/2
	w := &warehouse{shipped: make(map[string]int), fails: before}
	if err := run(t.Context(), s, w.ship); !errors.Is(err, errBroken) ||
		!strings.HasPrefix(err.Error(), "record ") {
		t.Fatalf("got %v", err)
	}
	w.shipTheRest(t, s)
	again := 0
	for _, n := range w.shipped {
		again += n - 1
	}
	if again >= batchRecords {
		t.Errorf("%d orders were shipped again, more than one batch has", again)
	}
}

func TestASignalEndsTheConsumerWithoutAnError(t *testing.T) {
	s := start(t)
	ctx, stop := context.WithCancel(t.Context())
	w := &warehouse{shipped: make(map[string]int)}
	err := run(ctx, s, func(ctx context.Context, order *kgo.Record) error {
		stop() // in the middle of a batch, which is ended and committed all the same
		return errors.Join(ctx.Err(), w.ship(ctx, order))
	})
	if err != nil {
		t.Fatal(err)
	}
	w.shipTheRest(t, s)
	for id, n := range w.shipped {
		if n != 1 {
			t.Errorf("%s was shipped %d times", id, n)
		}
	}
}
