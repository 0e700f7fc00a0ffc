package command

import (
	"bytes"
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/forwarder"
	"github.com/kdedup/kdedup/lab/workload"
)

// check compares the clean topic with what was produced.
type check struct {
	records, lost, doubled, changed int
}

func (c check) err() error {
	if c.lost+c.doubled+c.changed > 0 {
		return fmt.Errorf("the clean topic is wrong: %d lost, %d doubled, %d changed", c.lost,
			c.doubled, c.changed)
	}
	return nil
}

// checkClean reads the whole clean topic, as a consumer that only sees committed transactions.
func checkClean(ctx context.Context, c config.Config, t *traffic) (check, error) {
	expected := make(map[string]int32, t.orders)
	for order := range int32(t.orders) {
		expected[orderID(order)] = order
	}
	var (
		found check
		seen  = make(map[string]bool, t.orders)
	)
	err := workload.Read(ctx, demoConnection(c), c.Topics[0].Output, func(r *kgo.Record) bool {
		id := headerOf(r, orderIDHeader)
		found.records++
		if seen[id] {
			found.doubled++
		}
		seen[id] = true
		if order, ok := expected[id]; !ok || !sameBytes(r, orderRecord(order, 0)) {
			found.changed++
		}
		return true
	})
	for id := range expected {
		if !seen[id] {
			found.lost++
		}
	}
	return found, err
}

// sameBytes compares key, value and headers; copies differ in partition and timestamp.
func sameBytes(a, b *kgo.Record) bool {
	if !bytes.Equal(a.Key, b.Key) || !bytes.Equal(a.Value, b.Value) ||
		len(a.Headers) != len(b.Headers) {
		return false
	}
	for i := range a.Headers {
		if a.Headers[i].Key != b.Headers[i].Key ||
			!bytes.Equal(a.Headers[i].Value, b.Headers[i].Value) {
			return false
		}
	}
	return true
}

// showDuplicates prints some records of the duplicates topic and where their originals are.
func (d *demo) showDuplicates(ctx context.Context, c config.Config) error {
	const some = 5
	shown := 0
	fmt.Fprintln(d.out, "\nSome of the dropped duplicates, from orders.duplicates:")
	return workload.Read(ctx, demoConnection(c), c.Topics[0].DuplicatesTopic,
		func(r *kgo.Record) bool {
			fmt.Fprintf(d.out, "  %s  was orders[%s]@%s, a copy of orders[%s]@%s, claimed %s\n",
				headerOf(r, orderIDHeader),
				headerOf(r, forwarder.HeaderSourcePartition),
				headerOf(r, forwarder.HeaderSourceOffset),
				headerOf(r, forwarder.HeaderOwnerPartition),
				headerOf(r, forwarder.HeaderOwnerOffset),
				headerOf(r, forwarder.HeaderClaimedAt))
			shown++
			return shown < some
		})
}

func demoConnection(c config.Config) []kgo.Opt {
	return []kgo.Opt{kgo.SeedBrokers(c.Kafka.Brokers...)}
}

func headerOf(r *kgo.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}
