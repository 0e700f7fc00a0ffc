package command

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/pause"
)

const orderIDHeader = "message-id"

// traffic is the demo's stream of orders. Some orders are sent twice, as by a producer that repeats
// after a timeout: soon after the first copy, and on another partition. Once a whole range is sent
// again, as by a job that ran twice.
type traffic struct {
	copies []int32 // by order number: which orders to send, in what sequence
	orders int
	sent   atomic.Int64
	done   atomic.Bool
}

const (
	retryShare  = 0.08
	retryWithin = 2000 // orders between a copy and its retry
	resentShare = 0.04 // of all orders, in one range
)

// newTraffic is the same for equal numbers of orders.
func newTraffic(orders int) *traffic {
	type arrival struct {
		at    float64 // in orders since the beginning
		order int32
	}
	random := rand.New(rand.NewPCG(1, uint64(orders)))
	var arrivals []arrival
	for order := range orders {
		arrivals = append(arrivals, arrival{float64(order), int32(order)})
		if random.Float64() < retryShare {
			arrivals = append(arrivals, arrival{float64(order + 1 + random.IntN(retryWithin)),
				int32(order)})
		}
	}
	for again := range int(float64(orders) * resentShare) {
		arrivals = append(arrivals, arrival{float64(orders*2/3) + 0.5, int32(orders/3 + again)})
	}
	slices.SortStableFunc(arrivals, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	t := &traffic{orders: orders}
	for _, a := range arrivals {
		t.copies = append(t.copies, a.order)
	}
	return t
}

// produce sends everything at the rate, in records a second, and waits for the acknowledgements.
func (t *traffic) produce(ctx context.Context, brokers []string, rate int) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ClientID("shop"),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer client.Close()
	var (
		failure error
		once    sync.Once
		start   = time.Now()
		seen    = make(map[int32]int32)
	)
	promise := func(_ *kgo.Record, err error) {
		if err != nil {
			once.Do(func() { failure = err })
			return
		}
		t.sent.Add(1)
	}
	for n, order := range t.copies {
		if n%100 == 0 && !pace(ctx, start, n, rate) {
			break
		}
		client.Produce(ctx, orderRecord(order, seen[order]), promise)
		seen[order]++
	}
	if err := client.Flush(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	t.done.Store(true)
	if ctx.Err() != nil {
		return nil
	}
	return failure
}

// pace waits until the n-th record is due.
func pace(ctx context.Context, start time.Time, n, rate int) bool {
	due := start.Add(time.Duration(n) * time.Second / time.Duration(rate))
	return pause.For(ctx, time.Until(due))
}

// orderRecord is the same for every copy of an order, but for the partition.
func orderRecord(order, copied int32) *kgo.Record {
	customer := int32(int64(order) * 7919 % 5000)
	return &kgo.Record{
		Topic:     "orders",
		Partition: (customer + copied) % demoPartitions,
		Key:       fmt.Appendf(nil, "customer-%04d", customer),
		Value:     orderValue(order, customer),
		Headers: []kgo.RecordHeader{{Key: orderIDHeader, Value: []byte(orderID(order))},
			{Key: "content-type", Value: []byte("application/json")}},
	}
}

func orderValue(order, customer int32) []byte {
	items := []string{"teapot", "kettle", "cup", "saucer", "strainer", "tray"}
	cents := 500 + int(order)*37%20000
	return fmt.Appendf(nil,
		`{"order_id":"%s","customer":"customer-%04d","item":"%s","quantity":%d,"total_cents":%d,"currency":"EUR"}`,
		orderID(order), customer, items[int(order)%len(items)], 1+order%3, cents)
}

// orderID looks like a UUID of version 4 and follows from the number.
func orderID(order int32) string {
	var b [16]byte
	random := rand.New(rand.NewPCG(uint64(order), 4))
	binary.BigEndian.PutUint64(b[:8], random.Uint64())
	binary.BigEndian.PutUint64(b[8:], random.Uint64())
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
