package testkit

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// ReadCommitted calls each with every record that a read_committed consumer sees on the topic, up
// to what is committed at the time of the call: in the order of each partition, and without
// markers. It does not wait for open transactions. connection says at least where the brokers are.
func ReadCommitted(t testing.TB, topic string, each func(*kgo.Record), connection ...kgo.Opt) {
	t.Helper()
	client, err := kgo.NewClient(append(slices.Clip(connection), kgo.ConsumeTopics(topic),
		kgo.KeepControlRecords(), // the end may be a marker
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()))...)
	if err != nil {
		t.Fatalf("read %s: %v", topic, err)
	}
	defer client.Close()
	open := committedEnds(t, client, topic)
	for len(open) > 0 {
		fetches := client.PollFetches(t.Context())
		if err := errors.Join(fetches.Err(), t.Context().Err()); err != nil {
			t.Fatalf("read %s: %v", topic, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			end, ok := open[r.Partition]
			if ok && r.Offset < end && !r.Attrs.IsControl() {
				each(r)
			}
			if r.Offset+1 >= end {
				delete(open, r.Partition)
			}
		})
	}
}

// committedEnds returns the last stable offset of each partition that is not empty.
func committedEnds(t testing.TB, client *kgo.Client, topic string) map[int32]int64 {
	t.Helper()
	ends, err := kadm.NewClient(client).ListCommittedOffsets(t.Context(), topic)
	if err := errors.Join(err, ends.Error()); err != nil {
		t.Fatalf("read the ends of %s: %v", topic, err)
	}
	open := make(map[int32]int64)
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			open[o.Partition] = o.Offset
		}
	})
	return open
}

// Digest covers what a consumer sees of a record but for its place: key, value, headers and
// timestamp, each with its length. It tells null from empty.
func Digest(r *kgo.Record) [sha256.Size]byte {
	var b []byte
	field := func(data []byte) {
		n := int64(len(data))
		if data == nil {
			n = -1
		}
		b = binary.AppendVarint(b, n)
		b = append(b, data...)
	}
	field(r.Key)
	field(r.Value)
	for _, h := range r.Headers {
		field([]byte(h.Key))
		field(h.Value)
	}
	b = binary.AppendVarint(b, r.Timestamp.UnixMilli())
	return sha256.Sum256(b)
}
