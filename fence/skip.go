package fence

import (
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Skip is an operator's word about the record at which a partition is held. It is in the fence
// topic, behind the partition's fence: no other one is written before the record is dealt with.
type Skip struct {
	TopicID     [16]byte // of the input; zero where the broker did not tell it
	Offset      int64
	LeaderEpoch int32 // of the record; -1 if it is not known
	DeadLetter  bool  // it goes to the dead-letter topic; otherwise nowhere
}

type skipValue struct {
	TopicID     string `json:"topic_id"`
	Offset      int64  `json:"offset"`
	LeaderEpoch *int32 `json:"leader_epoch,omitempty"` // earlier versions do not tell it
	Action      string `json:"action"`
}

const (
	actionDrop       = "drop"
	actionDeadLetter = "dead_letter"
)

// skipKey is beside the key of the fence. No topic has a slash in its name.
func skipKey(input string) string { return input + "/skip" }

// SkipRecord makes the record of a skip.
func SkipRecord(fenceTopic, input string, partition int32, s Skip) *kgo.Record {
	v := skipValue{hex.EncodeToString(s.TopicID[:]), s.Offset, &s.LeaderEpoch, actionDrop}
	if s.DeadLetter {
		v.Action = actionDeadLetter
	}
	value, err := json.Marshal(v)
	if err != nil {
		panic(err) // a struct of texts and a number
	}
	return &kgo.Record{Topic: fenceTopic, Partition: partition, Key: []byte(skipKey(input)),
		Value: value}
}

// Of reports whether the word is about a record. Where the log was cut, another one has its offset.
func (s Skip) Of(topicID [16]byte, offset int64, leaderEpoch int32) bool {
	return s.Offset == offset && SameTopic(s.TopicID, topicID) &&
		(s.LeaderEpoch < 0 || s.LeaderEpoch == leaderEpoch)
}

// parseSkip reads what SkipRecord made.
func parseSkip(r *kgo.Record) (Skip, error) {
	var v skipValue
	if err := json.Unmarshal(r.Value, &v); err != nil {
		return Skip{}, fmt.Errorf("skip %s[%d]@%d: %w", r.Topic, r.Partition, r.Offset, err)
	}
	s := Skip{Offset: v.Offset, LeaderEpoch: -1, DeadLetter: v.Action == actionDeadLetter}
	if v.LeaderEpoch != nil {
		s.LeaderEpoch = *v.LeaderEpoch
	}
	if !s.DeadLetter && v.Action != actionDrop {
		return Skip{}, fmt.Errorf("skip %s[%d]@%d: action %q is neither drop nor dead_letter",
			r.Topic, r.Partition, r.Offset, v.Action)
	}
	id, err := parseTopicID(v.TopicID)
	if err != nil {
		return Skip{}, fmt.Errorf("skip %s[%d]@%d: %w", r.Topic, r.Partition, r.Offset, err)
	}
	s.TopicID = id
	return s, nil
}
