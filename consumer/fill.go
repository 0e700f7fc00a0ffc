package consumer

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// fillTimeout is how long a batch waits for what lies behind it. It is reached only when a broker that
// just answered does not answer again.
const fillTimeout = 100 * time.Millisecond

// fill polls on while the batch has room and the broker has told of more: the store and the transaction
// cost less for each record of a large batch. At the end of the log it adds no delay. The batch grows
// by small fetches, so little more than the batch itself is in memory. Only the latest fetch says whether more
// is known: a partition whose broker is slow holds up no other.
func (m *member) fill(ctx context.Context, fetches kgo.Fetches, poll func(context.Context, int) kgo.Fetches) kgo.Fetches {
	ctx, cancel := context.WithTimeout(ctx, fillTimeout)
	defer cancel()
	records, bytes := m.opts.BatchRecords, m.opts.BatchBytes
	for latest := fetches; moreBehind(latest); {
		records -= latest.NumRecords()
		bytes -= size(latest)
		if records <= 0 || bytes <= 0 {
			break
		}
		latest = poll(ctx, records)
		if ctx.Err() != nil && latest.NumRecords() == 0 {
			break // latest tells only of ctx
		}
		fetches = append(fetches, latest...)
	}
	return fetches
}

// moreBehind reports whether a partition had readable records behind the fetched ones.
func moreBehind(fetches kgo.Fetches) (more bool) {
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		if n := len(p.Records); n > 0 && p.Records[n-1].Offset+1 < p.LastStableOffset {
			more = true
		}
	})
	return more
}

// size is the bytes of keys, values and headers.
func size(fetches kgo.Fetches) (bytes int) {
	fetches.EachRecord(func(r *kgo.Record) {
		bytes += len(r.Key) + len(r.Value)
		for _, h := range r.Headers {
			bytes += len(h.Key) + len(h.Value)
		}
	})
	return bytes
}
