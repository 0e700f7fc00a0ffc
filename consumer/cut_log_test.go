package consumer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// cutLog is a partition whose leader may cut its end off, and a lane that reads it. A record's key
// is its ID. The first that is claimed of an ID owns it.
type cutLog struct {
	t         *testing.T
	random    *rand.Rand
	m         *member
	log       []*kgo.Record
	epoch     int32
	position  int // of the client, in log
	ids       int
	now       time.Time
	owners    map[string]owner
	forwarded map[string]int // times, by ID
}

type owner struct {
	record  *kgo.Record
	claimed time.Time
}

// turn polls a batch, and commits it or gives it back.
func (c *cutLog) turn() {
	var fetches kgo.Fetches
	if fetches, c.position = fetchesFrom(c.random, c.log, c.position); fetches.NumRecords() == 0 {
		return
	}
	batch := NewBatch(fetches, c.m.fenceLocked, "group", c.t.Context())
	commits := c.random.IntN(4) > 0
	forward := make(map[string]int)
	for i, r := range batch.Records {
		c.now = c.now.Add(time.Millisecond)
		id := string(r.Key)
		if c.owners[id].record == nil {
			c.owners[id] = owner{r.Record, c.now}
		}
		o := c.owners[id]
		place := Place{Offset: o.record.Offset, LeaderEpoch: o.record.LeaderEpoch}
		switch {
		case o.record == r.Record:
			batch.Own(i, o.claimed)
			if o.claimed.After(r.Settled) {
				forward[id]++
			}
		case forward[id] == 0 && batch.Gone(i, place, o.claimed):
			batch.Inherit(i, place)
			forward[id]++
		}
	}
	if commits {
		c.m.settle(batch)
		for id, n := range forward {
			c.forwarded[id] += n
		}
		return
	}
	c.m.partitions[0].doubt(c.m.opts.Limit.Records())
	c.position = slices.IndexFunc(c.log, func(r *kgo.Record) bool {
		return r.Offset >= batch.Spans[0].First
	})
}

// cut removes the end of the log. The client goes back to where it ends now, or to its beginning.
// No record is cut off that owns its ID and was not forwarded: for one such, each of its copies is
// forwarded, until the log is as long again.
func (c *cutLog) cut() {
	for id := range c.owners {
		if c.forwarded[id] == 0 {
			return
		}
	}
	c.log = c.log[:c.random.IntN(len(c.log)+1)]
	c.epoch++
	if c.position = min(c.position, len(c.log)); c.random.IntN(2) == 0 {
		c.position = 0
	}
}

// grow appends what the leader of now takes.
func (c *cutLog) grow() {
	offset := int64(0)
	if n := len(c.log); n > 0 {
		offset = c.log[n-1].Offset + 1
	}
	copies := c.random.IntN(3) == 0 // for a while
	for range c.random.IntN(30) {
		id := c.ids
		if copies || c.random.IntN(8) == 0 { // producers send again, also what was cut off
			id = c.random.IntN(c.ids + 1)
		}
		c.ids = max(c.ids, id+1)
		c.log = append(c.log, &kgo.Record{Topic: "orders", Offset: offset, LeaderEpoch: c.epoch,
			Key: fmt.Append(nil, id)})
		offset++
	}
}

// An unclean election takes the end of the log. What is left of it was handled all the same, and is
// known for that when an operator sets the offsets back later. So is what was cut off, when
// producers send it again.
func TestALogThatIsCutAndOffsetsThatAreSetBackForwardNothingTwice(t *testing.T) {
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 2))
		c := &cutLog{t: t, random: random, m: memberOf(t, 0), now: time.Unix(1e9, 0),
			owners: make(map[string]owner), forwarded: make(map[string]int)}
		for range 40 {
			switch random.IntN(8) {
			case 0:
				c.cut()
			case 1:
				c.position = random.IntN(c.position + 1)
			case 2:
				c.grow()
			default:
				c.turn()
			}
		}
		for c.position < len(c.log) {
			c.turn()
		}
		for id, n := range c.forwarded {
			if n > 1 {
				t.Fatalf("seed %d: a record with ID %s was forwarded %d times", seed, id, n)
			}
		}
		for _, r := range c.log {
			if c.forwarded[string(r.Key)] == 0 {
				t.Fatalf("seed %d: no record with ID %s was forwarded", seed, r.Key)
			}
		}
	}
}
