package consumer

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// cutLog is a partition whose leader may cut its end off, and a lane that reads it. Each record has
// an ID of its own, but for copies, which own nothing.
type cutLog struct {
	t         *testing.T
	random    *rand.Rand
	m         *member
	log       []*kgo.Record
	epoch     int32
	position  int // of the client, in log
	now       time.Time
	claimed   map[*kgo.Record]time.Time
	forwarded map[*kgo.Record]int
}

// turn polls a batch, and commits it or gives it back.
func (c *cutLog) turn() {
	var fetches kgo.Fetches
	next := c.position
	for range 1 + c.random.IntN(3) {
		if c.random.IntN(6) == 0 {
			next = c.random.IntN(next + 1)
		}
		n := min(c.random.IntN(12), len(c.log)-next)
		fetches = append(fetches, fetchOf(c.log[next:next+n])...)
		next += n
	}
	if c.position = next; fetches.NumRecords() == 0 {
		return
	}
	batch := NewBatch(fetches, c.m.fenceLocked, "group", c.t.Context())
	commits := c.random.IntN(4) > 0
	for i, r := range batch.Records {
		if isCopy(r.Record) {
			continue
		}
		c.now = c.now.Add(time.Millisecond)
		if c.claimed[r.Record].IsZero() {
			c.claimed[r.Record] = c.now
		}
		batch.Own(i, c.claimed[r.Record])
		if commits && c.claimed[r.Record].After(r.Settled) {
			c.forwarded[r.Record]++
		}
	}
	if commits {
		c.m.settle(batch)
		return
	}
	c.position = slices.IndexFunc(c.log, func(r *kgo.Record) bool {
		return r.Offset >= batch.Spans[0].First
	})
}

// cut removes the end of the log. The client goes back to where it ends now, or to its beginning.
func (c *cutLog) cut() {
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
		r := &kgo.Record{Topic: "orders", Offset: offset, LeaderEpoch: c.epoch}
		if copies {
			r.Key = []byte("copy")
		}
		c.log = append(c.log, r)
		offset++
	}
}

func isCopy(r *kgo.Record) bool { return r.Key != nil }

// An unclean election takes the end of the log. What is left of it was handled all the same, and is
// known for that when an operator sets the offsets back later.
func TestALogThatIsCutAndOffsetsThatAreSetBackForwardNothingTwice(t *testing.T) {
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 2))
		c := &cutLog{t: t, random: random, m: memberOf(t, 0), now: time.Unix(1e9, 0),
			claimed: make(map[*kgo.Record]time.Time), forwarded: make(map[*kgo.Record]int)}
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
		for r, n := range c.forwarded {
			if n > 1 {
				t.Fatalf("seed %d: the record at offset %d of epoch %d was forwarded %d times",
					seed, r.Offset, r.LeaderEpoch, n)
			}
		}
		for _, r := range c.log {
			if c.forwarded[r] == 0 && !isCopy(r) {
				t.Fatalf("seed %d: the record at offset %d of epoch %d was not forwarded", seed,
					r.Offset, r.LeaderEpoch)
			}
		}
	}
}
