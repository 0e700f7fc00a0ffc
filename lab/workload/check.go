package workload

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Found is how a clean topic differs from what it should hold: every message once, in the order in
// which its partition was produced.
type Found struct {
	Records int `json:"records"`
	Lost    int `json:"lost"`    // messages that are not there
	Doubled int `json:"doubled"` // records beyond the first of their message
	Changed int `json:"changed"` // records that are not byte for byte what was produced
	// records behind one of their partition that was produced later
	Misplaced int `json:"misplaced"`
}

// Err is nil if nothing differs.
func (f Found) Err() error {
	if f.Lost+f.Doubled+f.Changed+f.Misplaced > 0 {
		return fmt.Errorf(
			"the clean topic is wrong: %d lost, %d doubled, %d changed, %d out of order", f.Lost,
			f.Doubled, f.Changed, f.Misplaced)
	}
	return nil
}

// Check reads the clean topic of this many messages as a consumer does that sees only committed
// transactions.
func (s Spec) Check(
	ctx context.Context, connection []kgo.Opt, topic string, messages int,
) (Found, error) {
	c := checker{spec: s, seen: make([]bool, messages), last: make(map[int32]uint64)}
	err := Read(ctx, connection, topic, func(r *kgo.Record) bool {
		c.add(r)
		return true
	})
	for _, seen := range c.seen {
		if !seen {
			c.found.Lost++
		}
	}
	return c.found, err
}

type checker struct {
	spec  Spec
	seen  []bool           // by message
	last  map[int32]uint64 // by partition, the latest place
	found Found
}

func (c *checker) add(r *kgo.Record) {
	c.found.Records++
	message, known := c.message(r)
	switch {
	case !known || !c.intact(r, message):
		c.found.Changed++
	case c.seen[message]:
		c.found.Doubled++
	}
	if !known {
		return
	}
	c.seen[message] = true
	place, ok := placeOf(r)
	if !ok {
		return
	}
	if latest, ok := c.last[r.Partition]; ok && place <= latest {
		c.found.Misplaced++
	}
	c.last[r.Partition] = max(c.last[r.Partition], place)
}

// message returns which one the record carries, if it is one of those that were produced. Somebody
// may have changed it on its way.
func (c *checker) message(r *kgo.Record) (message uint64, known bool) {
	if len(r.Value) < MinSize {
		return 0, false
	}
	message = binary.BigEndian.Uint64(r.Value)
	return message, message < uint64(len(c.seen))
}

func (c *checker) intact(r *kgo.Record, message uint64) bool {
	return bytes.Equal(r.Value, c.spec.Value(int(message))) && len(r.Headers) == 2 &&
		r.Headers[0].Key == IDHeader && string(r.Headers[0].Value) == c.spec.ID(int(message)) &&
		r.Headers[1].Key == placeHeader && len(r.Headers[1].Value) == 8
}

func placeOf(r *kgo.Record) (place uint64, ok bool) {
	for _, h := range r.Headers {
		if h.Key == placeHeader && len(h.Value) == 8 {
			return binary.BigEndian.Uint64(h.Value), true
		}
	}
	return 0, false
}
