package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

// Orders have their ID in a header or in a document behind a schema ID, in two spellings, and each
// copy has another time. Heartbeats and tombstones, which have none, are between them.
func TestATopicOfManyKindsOfRecordsIsCleanedOnce(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	deliveries(t, func(t *testing.T, delivery string) {
		d := deploy(t, delivery, append(slices.Clone(killed),
			"message_id: {from: first_of, parts: [{from: header, name: ce_id, normalize: [uuid]}, "+
				"{from: json, path: order.id, normalize: [trim, uuid]}]}",
			"only_if: {from: header, name: type, is: [order]}", "on_tombstone: forward",
			"fingerprint: {ignore: [ts_ms]}", "on_conflict: dead_letter")...)
		d.produceKinds(60_000, 51)
		d.killInMidRun(nil)
		d.waitFor(1)
		d.mustLoseNothing()
		if dead := d.read(d.input + ".dlq"); len(dead) > 0 {
			t.Errorf("dead letters of %d partitions: a copy was taken for another message",
				len(dead))
		}
	})
}

// produceKinds fills the input; the second header tells what the record is for the check.
func (d *deployment) produceKinds(n int, seed uint64) {
	d.t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	orders := 0
	for i := range n {
		r := &kgo.Record{Topic: d.input, Partition: int32(random.IntN(partitions)),
			Key: fmt.Appendf(nil, "customer-%d", i%1000)}
		what, kind := fmt.Sprintf("%d", i), "heartbeat"
		var id []kgo.RecordHeader
		switch random.IntN(8) {
		case 0:
			r.Value = []byte("alive")
		case 1:
			kind = "tombstone"
		default:
			order := orders
			if orders > 0 && random.IntN(8) == 0 {
				order = random.IntN(orders)
			} else {
				orders++
			}
			what, kind = fmt.Sprintf("order-%d", order), "order"
			r.Key = fmt.Appendf(nil, "customer-%d", order%1000)
			id = orderIn(r, order, i, random.IntN(2) == 0)
		}
		r.Headers = append([]kgo.RecordHeader{{Key: "trace"}, {Key: "what", Value: []byte(what)},
			{Key: "type", Value: []byte(kind)}}, id...)
		d.client.Produce(d.t.Context(), r, nil)
	}
	if err := d.client.Flush(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
}

// orderIn makes the value, and the header with the ID if it is there.
func orderIn(r *kgo.Record, order, serial int, inHeader bool) []kgo.RecordHeader {
	uuid := fmt.Sprintf("0a12c11d-71fa-4a2d-a02e-%012x", order)
	document := fmt.Appendf(nil, `{"ts_ms": %d, "order": {"id": " {%s} ", "lines": [1, 2]}}`, serial,
		strings.ToUpper(uuid))
	if inHeader {
		r.Value = document
		return []kgo.RecordHeader{{Key: "ce_id", Value: []byte(uuid)}}
	}
	r.Value = append([]byte{0, 0, 0, 0, 7}, document...)
	return nil
}
