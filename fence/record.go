package fence

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
	Group        string      `json:"group,omitempty"`
	Store        string      `json:"store,omitempty"`
	ClaimedUntil time.Time   `json:"claimed_until,omitzero"`
	Again        []stepValue `json:"again,omitempty"` // what a rewind has read again so far
	Cut          []cutValue  `json:"cut,omitempty"`   // of earlier logs, longer than this one
	Missing      string      `json:"missing,omitempty"`
	MissingUntil time.Time   `json:"missing_until,omitzero"`
}

type stepValue struct {
	NextOffset   int64     `json:"next_offset"`
	ClaimedUntil time.Time `json:"claimed_until"`
}

type cutValue struct {
	NextOffset   int64     `json:"next_offset"`
	LeaderEpoch  int32     `json:"leader_epoch"`
	ClaimedUntil time.Time `json:"claimed_until,omitzero"`
	FromOffset   *int64    `json:"from_offset,omitempty"` // where the log was cut, if that is known
}

// Record makes the record of a partition's fence. The key is the input topic: compaction keeps
// the last fence of each partition.
func Record(fenceTopic, input string, partition int32, f Fence) *kgo.Record {
	v := fenceValue{TopicID: hex.EncodeToString(f.TopicID[:]), NextOffset: f.Next(),
		LeaderEpoch: f.LeaderEpoch, Group: f.Group, Store: f.Store}
	for i, s := range f.steps {
		if i == len(f.steps)-1 {
			v.ClaimedUntil = s.claimed
			break
		}
		v.Again = append(v.Again, stepValue{s.next, s.claimed})
	}
	for _, c := range f.cuts {
		value := cutValue{c.next, c.epoch, c.claimed, nil}
		if c.from != unknown {
			value.FromOffset = &c.from
		}
		v.Cut = append(v.Cut, value)
	}
	v.Missing, v.MissingUntil = f.missing.encode(), f.until
	value, err := json.Marshal(v)
	if err != nil {
		panic(err) // a struct of texts, numbers and times of this era
	}
	return &kgo.Record{Topic: fenceTopic, Partition: partition, Key: []byte(input), Value: value}
}

// Parse reads what Record made.
func Parse(r *kgo.Record) (Fence, error) {
	var v fenceValue
	if err := json.Unmarshal(r.Value, &v); err != nil {
		return Fence{}, fmt.Errorf("fence %s[%d]@%d: %w", r.Topic, r.Partition, r.Offset, err)
	}
	f := Fence{LeaderEpoch: v.LeaderEpoch, Group: v.Group, Store: v.Store}
	var err error
	if f.TopicID, err = parseTopicID(v.TopicID); err != nil {
		return Fence{}, fmt.Errorf("fence %s[%d]@%d: %w", r.Topic, r.Partition, r.Offset, err)
	}
	if f.missing, err = decodeMissing(v.Missing); err != nil {
		return Fence{}, fmt.Errorf("fence %s[%d]@%d: %w", r.Topic, r.Partition, r.Offset, err)
	}
	f.until = v.MissingUntil.UTC()
	steps := []step{{v.NextOffset, v.ClaimedUntil.UTC()}}
	for _, s := range v.Again {
		steps = append(steps, step{s.NextOffset, s.ClaimedUntil.UTC()})
	}
	f.steps = stairs(steps, nil)
	cuts := make([]cut, len(v.Cut))
	for i, c := range v.Cut {
		cuts[i] = cut{step{c.NextOffset, c.ClaimedUntil.UTC()}, c.LeaderEpoch, unknown}
		if c.FromOffset != nil {
			cuts[i].from = max(*c.FromOffset, 0)
		}
	}
	f.cuts = union(cuts, nil)
	return f.withoutKnown(), nil
}

func parseTopicID(text string) (id [16]byte, err error) {
	if n, err := hex.Decode(id[:], []byte(text[:min(len(text), 2*len(id))])); err != nil ||
		n != len(id) || len(text) > 2*n {
		return id, fmt.Errorf("topic_id %q is not 16 bytes in hex", text)
	}
	return id, nil
}
