package client

import (
	"errors"
	"slices"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

// unpackAhead is how many unpacked bytes a client keeps for its lane. One fetch may hold many
// batches of a few kilobytes that unpack to megabytes each, and kgo bounds a batch, not a fetch.
const unpackAhead = 64 << 20

// errLater leaves a batch for the next fetch. kgo tells it only for a partition that had no other
// batch.
var errLater = errors.New("the client has unpacked enough until its lane has polled")

// unpacker unpacks no further batch while enough bytes wait for the lane. So they are unpackAhead
// and one batch of each broker at the most.
type unpacker struct {
	kgo.Decompressor // bounds a batch
	ahead            atomic.Int64
}

// newUnpacker bounds a batch as kgo does, whose bounded decompressor only a client gives away. That
// one connects nowhere.
func newUnpacker(most int) (*unpacker, error) {
	client, err := kgo.NewClient(kgo.MaxDecompressBatchBytes(most))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return &unpacker{Decompressor: client.OptValue(kgo.WithDecompressor).(kgo.Decompressor)}, nil
}

// Decompress implements kgo.Decompressor.
func (u *unpacker) Decompress(src []byte, codec kgo.CompressionCodecType) ([]byte, error) {
	if u.ahead.Load() >= unpackAhead {
		return nil, errLater
	}
	out, err := u.Decompressor.Decompress(src, codec)
	u.ahead.Add(int64(len(out)))
	return out, err
}

// polled takes what waits still for all that is unpacked.
func (u *unpacker) polled(buffered int64) { u.ahead.Store(buffered) }

// withoutLater removes what is no error.
func withoutLater(fetches kgo.Fetches) kgo.Fetches {
	for i := range fetches {
		for j := range fetches[i].Topics {
			t := &fetches[i].Topics[j]
			t.Partitions = slices.DeleteFunc(t.Partitions, func(p kgo.FetchPartition) bool {
				return errors.Is(p.Err, errLater)
			})
		}
	}
	return fetches
}
