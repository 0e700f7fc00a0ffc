package consumer

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

func spanOf(partition int32, first, next int64) *Batch {
	return &Batch{Spans: []Span{{Partition: partition, First: first, Next: next}}}
}

// What was given back must come again before anything behind it: a commit would pass over it.
func TestABatchThatWasGivenBackMustComeAgain(t *testing.T) {
	cases := []struct {
		name  string
		then  func(*member) // after records 10 to 19 were given back
		first int64
		wrong bool
	}{
		{"it comes again", nil, 10, false},
		{"from further back", nil, 7, false},
		{"the records behind it come", nil, 20, true},
		{"a part of it is missing", nil, 11, true},
		{"it came again, and then those behind it", func(m *member) { _ = m.checkRedelivery(spanOf(0, 10, 20)) }, 20, false},
		{"the partition was taken away and came back where another lane left it", func(m *member) {
			m.revoke(t.Context(), nil, map[string][]int32{"orders": {0}})
			m.fences[0] = Fence{}
		}, 20, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := memberOf(t, 0)
			m.giveBack(spanOf(0, 10, 20))
			if c.then != nil {
				c.then(m)
			}
			if err := m.checkRedelivery(spanOf(0, c.first, c.first+1)); (err != nil) != c.wrong {
				t.Errorf("got %v", err)
			}
		})
	}
}

// The group may have taken the partition away and given it back before the batch is: then it begins at the
// group's offsets, which another lane may have moved.
func TestAPartitionThatCameBackIsNotHeldToTheOldBatch(t *testing.T) {
	m := memberOf(t, 0)
	assigned := map[string][]int32{"orders": {0}}
	m.revoke(t.Context(), nil, assigned)
	m.assign(t.Context(), nil, assigned)
	m.giveBack(spanOf(0, 10, 20))
	if err := m.checkRedelivery(spanOf(0, 20, 21)); err != nil {
		t.Error(err)
	}
}

// memberOf has one partition, whose fence is known.
func memberOf(t *testing.T, partition int32) *member {
	t.Helper()
	m := newMember(Options{
		Input: "orders", Metrics: NewCollectors(prometheus.NewRegistry()).For("orders"), Logger: slog.New(slog.DiscardHandler),
	})
	m.fences[partition] = Fence{}
	return m
}

func TestOnlyALaneThatWaitsWhileRecordsLieThereIsStuck(t *testing.T) {
	const often = int(undelivered / lagInterval)
	cases := []struct {
		name    string
		measure func(m *member, i int)
		stuck   bool
	}{
		{"records wait at one position", func(m *member, _ int) { m.noteLag(0, 10, 5) }, true},
		{"more and more wait there", func(m *member, i int) { m.noteLag(0, 10, int64(i+1)) }, true},
		{"none wait", func(m *member, _ int) { m.noteLag(0, 10, 0) }, false},
		{"the position moves", func(m *member, i int) { m.noteLag(0, int64(i), 5) }, false},
		{"it waits now and then", func(m *member, i int) { m.noteLag(0, 10, int64(i%2)) }, false},
		{"the partition is another lane's", func(m *member, _ int) { m.noteLag(1, 10, 5) }, false},
		{"the lane works on a batch", func(m *member, _ int) {
			idle := m.idle
			m.setIdle(nil)
			m.noteLag(0, 10, 5)
			m.setIdle(idle)
		}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := memberOf(t, 0)
			var cause error
			m.setIdle(func(err error) { cause = err })
			for i := range often + 1 {
				if cause != nil {
					t.Fatalf("stuck after %d measurements: %v", i, cause)
				}
				c.measure(m, i)
			}
			if (cause != nil) != c.stuck {
				t.Errorf("got %v", cause)
			}
		})
	}
}

// A client that does not deliver what is there is given up: its session ends, and the next one reads on.
func TestASessionThatGetsNothingEnds(t *testing.T) {
	clusters(t, func(t *testing.T, brokers []string) {
		input := testkit.Topic(t, brokers, "orders", 1, nil)
		fences := testkit.Topic(t, brokers, "fences", 1, map[string]string{"cleanup.policy": "compact"})
		session, err := JoinAtLeastOnce(memberOptions(t, brokers, input, fences, "one"))
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		session.client.PauseFetchPartitions(map[string][]int32{input: {0}})
		if err := newClient(t, brokers).ProduceSync(t.Context(), &kgo.Record{Topic: input, Value: []byte("there")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		polled := make(chan error, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() {
			batch, err := session.Poll(ctx)
			for err == nil && batch != nil { // empty: a fetch was under way when the partition was paused
				batch, err = session.Poll(ctx)
			}
			polled <- err
		}()
		testkit.Eventually(t, time.Minute, "the end of the poll", func() bool {
			session.lag.update(ctx)
			return len(polled) > 0
		})
		if err := <-polled; err == nil || !strings.Contains(err.Error(), "1 records of partition 0, from offset 0, were not delivered") {
			t.Errorf("got %v", err)
		}
	})
}
