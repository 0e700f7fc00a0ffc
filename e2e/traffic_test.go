package e2e_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/twmb/franz-go/pkg/kgo"
)

// produce writes n records, the largest ten times as large as the smallest, of which one in ten is
// a copy of an earlier one on another partition. A copy differs in a header, so that the check can
// tell which one was forwarded. Copies follow soon, so that both orders of equal IDs occur between
// partitions that are read at different speeds.
func (d *deployment) produce(n int, seed uint64) {
	d.t.Helper()
	d.traffic(seed)(n)
}

// traffic is produce in pieces: each call goes on where the last one ended.
func (d *deployment) traffic(seed uint64) (more func(n int)) {
	random := rand.New(rand.NewPCG(seed, 1))
	ids, serial := 0, 0
	return func(n int) {
		d.t.Helper()
		records := make([]*kgo.Record, n)
		for i := range records {
			id, copied := ids, 0
			if ids > 0 && random.IntN(10) == 0 {
				id, copied = max(0, ids-1-random.IntN(5000)), 1+random.IntN(partitions-1)
			} else {
				ids++
			}
			records[i] = d.record(id, copied, serial)
			serial++
		}
		if err := d.client.ProduceSync(d.t.Context(), records...).FirstErr(); err != nil {
			d.t.Fatal(err)
		}
	}
}

// noise is what values are pieces of. To make each value by itself, byte after byte, would be most
// of a test's work under the race detector.
var noise = func() []byte {
	text := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(text) // never fails
	return text
}()

// record is copy number copied of a message; all copies have the same key and value.
func (d *deployment) record(id, copied, serial int) *kgo.Record {
	random := rand.New(rand.NewPCG(uint64(id), 2))
	size := d.largest/10 + random.IntN(d.largest*9/10+1)
	at := random.IntN(len(noise) - size)
	return &kgo.Record{
		Topic: d.input, Partition: int32((id + copied) % partitions),
		Key: fmt.Appendf(nil, "customer-%d", id%1000), Value: noise[at : at+size : at+size],
		Headers: []kgo.RecordHeader{
			{Key: "trace", Value: nil},
			{Key: "message-id", Value: fmt.Appendf(nil, "%s/%08d", d.input, id)},
			{Key: "attempt", Value: fmt.Appendf(nil, "%d", serial)},
		},
	}
}
