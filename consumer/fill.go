package consumer

import (
	"context"
	"time"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// fillTimeout is how long a batch fills at the most: its first records wait, and so does a
	// rebalance. Where the broker shares its processors with a busy store, a batch of 20,000
	// records takes some hundred milliseconds.
	fillTimeout = time.Second
	// behindTimeout is how long a batch waits for the next fetch of what lies behind it. It is
	// reached only when a broker that just answered does not answer again.
	behindTimeout = 100 * time.Millisecond
	// freshTimeout is how long a batch waits for what may have come: a few round trips to a broker
	// nearby.
	freshTimeout = 5 * time.Millisecond
)

// waitingBelow tells a poll whose records had been waiting in the client from one that waited for
// records.
const waitingBelow = time.Millisecond

// fill polls on while the batch has room and the broker has told of more: the store and the
// transaction cost less for each record of a large batch. At the end of the log it adds no delay.
// The batch grows by small fetches, so little more than the batch itself is in memory. Only the
// latest fetch says whether more is known: a partition whose broker is slow holds up no other.
//
// The client fetches ahead once, and then not until the next poll. If the records were waiting when
// they were polled, others came while the batch before was at work; they are fetched once, or they
// would wait for all of this batch too.
func (m *member) fill(ctx context.Context, fetches kgo.Fetches, waiting bool) kgo.Fetches {
	ctx, cancel := context.WithTimeout(ctx, fillTimeout)
	defer cancel()
	room := m.opts.Limit.limits()
	for latest := fetches; ; waiting = false {
		room.records -= latest.NumRecords()
		timeout := fillingFor(latest, waiting)
		if timeout == 0 || room.records <= 0 || m.filled >= room.bytes {
			return fetches
		}
		latest = m.pollFor(ctx, timeout, room.records)
		m.filled += size(latest)
		fetches = append(fetches, latest...)
	}
}

// fillingFor is how long to poll again after a fetch, 0 if not at all.
func fillingFor(latest kgo.Fetches, waiting bool) time.Duration {
	switch {
	case moreBehind(latest):
		return behindTimeout
	case waiting:
		return freshTimeout
	}
	return 0
}

// pollFor polls for a time, whose end is no error.
func (m *member) pollFor(ctx context.Context, timeout time.Duration, records int) kgo.Fetches {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	fetches := m.client.Poll(ctx, records)
	if ctx.Err() != nil && fetches.NumRecords() == 0 {
		return nil // they tell only of ctx
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

const (
	recordBytes = int(unsafe.Sizeof(kgo.Record{}))
	headerBytes = int(unsafe.Sizeof(kgo.RecordHeader{}))
)

// size is how many bytes the records take in memory. Of records without a value, or with a thousand
// empty headers, that is a multiple of what they are on the wire.
func size(fetches kgo.Fetches) (bytes int) {
	fetches.EachRecord(func(r *kgo.Record) {
		bytes += recordBytes + len(r.Key) + len(r.Value) + len(r.Headers)*headerBytes
		for _, h := range r.Headers {
			bytes += len(h.Key) + len(h.Value)
		}
	})
	return bytes
}
