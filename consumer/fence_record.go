package consumer

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// fenceValue is a fence as it stands in the topic, readable with any console consumer.
type fenceValue struct {
	TopicID      string      `json:"topic_id"`
	NextOffset   int64       `json:"next_offset"`
	LeaderEpoch  int32       `json:"leader_epoch"`
	ClaimedUntil time.Time   `json:"claimed_until,omitzero"`
	Again        []stepValue `json:"again,omitempty"` // what a rewind has read again so far
}

type stepValue struct {
	NextOffset   int64     `json:"next_offset"`
	ClaimedUntil time.Time `json:"claimed_until"`
}

// fenceRecord makes the record of a partition's fence. The key is the input topic: compaction keeps
// the last fence of each partition.
func fenceRecord(fenceTopic, input string, partition int32, f Fence) *kgo.Record {
	v := fenceValue{TopicID: hex.EncodeToString(f.TopicID[:]), NextOffset: f.Next(), LeaderEpoch: f.LeaderEpoch}
	for i, s := range f.steps {
		if i == len(f.steps)-1 {
			v.ClaimedUntil = s.claimed
			break
		}
		v.Again = append(v.Again, stepValue{s.next, s.claimed})
	}
	value, err := json.Marshal(v)
	if err != nil {
		panic(err) // a struct of texts, numbers and times of this era
	}
	return &kgo.Record{Topic: fenceTopic, Partition: partition, Key: []byte(input), Value: value}
}

func parseFence(r *kgo.Record) (Fence, error) {
	var v fenceValue
	if err := json.Unmarshal(r.Value, &v); err != nil {
		return Fence{}, fmt.Errorf("fence %s[%d]@%d: %w", r.Topic, r.Partition, r.Offset, err)
	}
	f := Fence{LeaderEpoch: v.LeaderEpoch}
	id, err := hex.DecodeString(v.TopicID)
	if err != nil || len(id) != len(f.TopicID) {
		return Fence{}, fmt.Errorf("fence %s[%d]@%d: topic_id %q is not 16 bytes in hex", r.Topic, r.Partition, r.Offset, v.TopicID)
	}
	copy(f.TopicID[:], id)
	steps := []step{{v.NextOffset, v.ClaimedUntil.UTC()}}
	for _, s := range v.Again {
		steps = append(steps, step{s.NextOffset, s.ClaimedUntil.UTC()})
	}
	f.steps = stairs(steps, nil)
	return f, nil
}
