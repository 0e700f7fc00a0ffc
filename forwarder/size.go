package forwarder

import (
	"math/bits"

	"github.com/twmb/franz-go/pkg/kgo"
)

// batchOverhead is the size of a record batch (message format 2) without its records.
const batchOverhead = 61

// soleBatchSize is how large a batch is that holds only this record, uncompressed: what the topic's
// max.message.bytes must admit.
func soleBatchSize(r *kgo.Record) int {
	n := 1 + 1 + 1 + // attributes, timestamp delta 0, offset delta 0
		fieldSize(len(r.Key)) + fieldSize(len(r.Value)) + varintSize(len(r.Headers))
	for i := range r.Headers {
		n += fieldSize(len(r.Headers[i].Key)) + fieldSize(len(r.Headers[i].Value))
	}
	return batchOverhead + varintSize(n) + n
}

// fieldSize is a length-prefixed field; null takes as much as empty.
func fieldSize(n int) int { return varintSize(n) + n }

// varintSize is the size of a zigzag varint that is not negative.
func varintSize(n int) int { return (bits.Len64(uint64(n)<<1|1) + 6) / 7 }
