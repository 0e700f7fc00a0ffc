package consumer

import (
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Fence says up to where an input partition is done. The zero value covers nothing.
type Fence struct {
	TopicID     [16]byte
	Next        int64 // all records below were handled, and that was committed
	LeaderEpoch int32 // of the last of them
}

// covers reports whether the record was handled. Offsets that an unclean leader election makes be
// used again carry a higher epoch, and those of a recreated topic another topic ID: new records are
// never taken for old ones. Records without an epoch (message formats 0 and 1) are never covered.
func (f Fence) covers(topicID [16]byte, r *kgo.Record) bool {
	return r.Offset < f.Next && topicID == f.TopicID &&
		r.LeaderEpoch >= 0 && r.LeaderEpoch <= f.LeaderEpoch
}

// Advance is the part of a span that the next fence takes from it: a fence never goes back. While
// offsets that were set back are read again the spans end below it, and with a lower fence the next
// session would take the rest of them for new. A later epoch is another log: there it begins anew.
func (f Fence) Advance(s Span) Span {
	if f.TopicID == s.TopicID && f.Next > s.Next && f.LeaderEpoch >= s.LeaderEpoch {
		s.Next, s.LeaderEpoch = f.Next, f.LeaderEpoch
	}
	return s
}

// fenceValue is a fence as it stands in the topic, readable with any console consumer.
type fenceValue struct {
	TopicID     string `json:"topic_id"`
	NextOffset  int64  `json:"next_offset"`
	LeaderEpoch int32  `json:"leader_epoch"`
}

// fenceRecord makes the record for a span that is done. The key is the input topic: compaction
// keeps the last fence of each partition.
func fenceRecord(fenceTopic, input string, s Span) *kgo.Record {
	value, err := json.Marshal(fenceValue{hex.EncodeToString(s.TopicID[:]), s.Next, s.LeaderEpoch})
	if err != nil {
		panic(err) // a struct of a string and numbers
	}
	return &kgo.Record{Topic: fenceTopic, Partition: s.Partition, Key: []byte(input), Value: value}
}

func parseFence(r *kgo.Record) (Fence, error) {
	var v fenceValue
	if err := json.Unmarshal(r.Value, &v); err != nil {
		return Fence{}, fmt.Errorf("fence %s[%d]@%d: %w", r.Topic, r.Partition, r.Offset, err)
	}
	f := Fence{Next: v.NextOffset, LeaderEpoch: v.LeaderEpoch}
	id, err := hex.DecodeString(v.TopicID)
	if err != nil || len(id) != len(f.TopicID) {
		return Fence{}, fmt.Errorf("fence %s[%d]@%d: topic_id %q is not 16 bytes in hex", r.Topic, r.Partition, r.Offset, v.TopicID)
	}
	copy(f.TopicID[:], id)
	return f, nil
}
