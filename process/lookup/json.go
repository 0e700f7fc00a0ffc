package lookup

import (
	"encoding/json"
	"time"
)

// written is an answer for programs: what is not known is null.
type written struct {
	ID          string     `json:"id"`
	Hex         bool       `json:"hex"`
	Scope       string     `json:"scope"`
	Seen        bool       `json:"seen"`
	Manual      bool       `json:"manual"`
	TopicID     *string    `json:"owner_topic_id"`
	Partition   *int32     `json:"owner_partition"`
	Offset      *int64     `json:"owner_offset"`
	LeaderEpoch *int32     `json:"owner_leader_epoch"`
	Fingerprint *string    `json:"fingerprint"`
	ClaimedAt   *time.Time `json:"claimed_at"`
	Ends        *time.Time `json:"ends"`
	Sliding     bool       `json:"sliding"`
	Forwarded   *string    `json:"forwarded"`
}

// MarshalJSON implements json.Marshaler.
func (l Answer) MarshalJSON() ([]byte, error) {
	owned := l.Seen && !l.Manual
	return json.Marshal(written{
		l.ID, l.Hex, l.Scope, l.Seen, l.Manual, known(owned, l.TopicID), known(owned, l.Partition),
		known(owned, l.Offset), known(owned, l.LeaderEpoch), known(owned, l.Fingerprint),
		known(l.Seen, l.ClaimedAt), known(l.Seen, l.Ends), l.Sliding,
		known(owned, l.Forwarded),
	})
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *Answer) UnmarshalJSON(text []byte) error {
	var w written
	if err := json.Unmarshal(text, &w); err != nil {
		return err
	}
	*l = Answer{
		w.ID, w.Hex, w.Scope, w.Seen, w.Manual, zeroOr(w.TopicID), zeroOr(w.Partition),
		zeroOr(w.Offset), zeroOr(w.LeaderEpoch), zeroOr(w.Fingerprint), zeroOr(w.ClaimedAt),
		zeroOr(w.Ends), w.Sliding, zeroOr(w.Forwarded),
	}
	return nil
}

func known[T any](is bool, value T) *T {
	if !is {
		return nil
	}
	return &value
}

func zeroOr[T any](value *T) (v T) {
	if value != nil {
		v = *value
	}
	return v
}
