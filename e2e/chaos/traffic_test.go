package chaos_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/pause"
)

const (
	partitions = 12 // at first
	// farthest is how many IDs ago the original of a copy may be, about ten seconds at the usual
	// rate.
	farthest = 20_000
	burst    = 50 * time.Millisecond
)

// traffic produces records of which one in ten is a copy of an earlier one, mostly on another
// partition. Half the copies follow at once, so that both orders of equal IDs occur between
// partitions that are read at different speeds; the others come some seconds later.
type traffic struct {
	client *kgo.Client
	topic  string
	random *rand.Rand

	width  int          // of the topic, of the one who widens it
	ids    int          // so far
	serial int          // records so far
	using  atomic.Int64 // the partitions that it produces to
	failed atomic.Int64
}

func newTraffic(t *testing.T, brokers []string, topic string, seed uint64) *traffic {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MaxBufferedRecords(100_000))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	p := &traffic{client: client, topic: topic, random: rand.New(rand.NewPCG(seed, 1)),
		width: partitions}
	p.using.Store(partitions)
	return p
}

// widen returns when records go to the new partitions, too: when the client knows them.
func (p *traffic) widen(ctx context.Context, to int) {
	p.width = to
	for {
		leader, _, err := p.client.PartitionLeader(p.topic, int32(to-1))
		if err == nil && leader >= 0 {
			p.using.Store(int64(to))
			return
		}
		p.client.ForceMetadataRefresh()
		if !pause.For(ctx, askEvery) {
			return
		}
	}
}

// run produces at a steady rate until ctx ends. While the broker is away, the client keeps what it
// gets; it sends each record once, in order.
func (p *traffic) run(ctx context.Context, rate int) {
	tick := time.NewTicker(burst)
	defer tick.Stop()
	start := time.Now()
	from := p.serial
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			due := int(time.Since(start).Seconds() * float64(rate))
			p.produce(ctx, min(due-(p.serial-from), rate))
		}
	}
}

func (p *traffic) produce(ctx context.Context, n int) {
	for range n {
		record := p.next()
		p.client.Produce(context.WithoutCancel(ctx), record, func(_ *kgo.Record, err error) {
			if err != nil {
				p.failed.Add(1)
			}
		})
	}
}

func (p *traffic) next() *kgo.Record {
	p.serial++
	if p.ids == 0 || p.random.IntN(10) > 0 {
		p.ids++
		return p.record(p.ids-1, 0)
	}
	reach := farthest
	if p.random.IntN(2) == 0 {
		reach = 500
	}
	return p.record(max(0, p.ids-1-p.random.IntN(reach)), p.random.IntN(int(p.using.Load())))
}

// record is a message or a copy of it. All have the same key and value; the attempt tells the check
// which one was forwarded.
func (p *traffic) record(id, shift int) *kgo.Record {
	random := rand.New(rand.NewPCG(uint64(id), 2))
	value := make([]byte, 100+random.IntN(401))
	for i := range value {
		value[i] = 'a' + byte(random.UintN(26))
	}
	return &kgo.Record{
		Topic: p.topic, Partition: int32((id + shift) % int(p.using.Load())),
		Key: fmt.Appendf(nil, "customer-%d", id%1000), Value: value,
		Headers: []kgo.RecordHeader{
			{Key: "trace", Value: nil},
			{Key: idHeader, Value: fmt.Appendf(nil, "%08d", id)},
			{Key: "attempt", Value: fmt.Appendf(nil, "%d", p.serial)},
		},
	}
}

const idHeader = "message-id"

// flush returns when the broker has everything.
func (p *traffic) flush(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), recoveryLimit)
	defer cancel()
	if err := p.client.Flush(ctx); err != nil {
		t.Fatalf("flush the producer: %v", err)
	}
	// The check compares topics, so a record that was not produced is none.
	if failed := p.failed.Load(); failed > 0 {
		t.Logf("%d records could not be produced", failed)
	}
}
