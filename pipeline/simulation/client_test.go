//go:build !race

package simulation

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/fence"
)

// client is a member of the group with its producer, as franz-go's client is.
type client struct {
	w       *world
	process *process
	number  int // among the clients of its slot: callbacks of a closed one may still wait
	events  consumer.Events

	generation int  // the last that it heard of; -1 before the first
	kicked     bool // given up by the coordinator, and does not know it
	closed     bool // or its process died
	calling    bool // a callback about a revocation has not returned
	held       []held
	passedOver bool // a Seek was ignored
	// at_least_once: records were polled, and no rebalance is allowed
	busy    bool
	attempt *attempt // the batch in hand
	// at_least_once: what is written of batches that were given back
	kept map[*source]kept

	buffer []pending
	commit *commit // the last one

	txnID    *transactionalID
	epoch    int
	begun    bool         // in a transaction
	aborting bool         // the lane gives a batch back
	wrote    bool         // has written records in it
	txn      *transaction // at its coordinator
}

var _ consumer.Client = (*client)(nil)

// held is what a client knows of a partition that was assigned to it.
type held struct {
	assigned   bool
	known      bool  // the group's offset was fetched
	validating bool  // OffsetForLeaderEpoch is not answered yet
	beginning  bool  // of the offset where it begins: no Seek is heeded meanwhile
	consumed   int32 // epoch of what lies below position; -1 if it is not known
	leader     int32 // epoch of the partition's leader, as far as the client has heard
	loss       *kgo.ErrDataLoss
	paused     bool  // by the session
	revoking   bool  // nothing is fetched any more, but the callback has not returned
	position   int64 // where the next poll goes on
	committed  int64
	begun      int64 // committed, when it was assigned
	epoch      int32 // of committed; -1 if it is not known
}

var (
	errFetch   = errors.New("simulation: fetch failed")
	errProduce = errors.New("simulation: record was not acknowledged")
	errAnswer  = errors.New("simulation: no answer")
)

func (c *client) pause(what string, ready func() bool) {
	c.process.pause(fmt.Sprintf("%s %d", what, c.number), ready)
}

func (c *client) must(ok bool, rule string) {
	if !ok {
		c.w.failf("the lane broke the contract of a session: %s", rule)
	}
}

// Poll implements consumer.Client. Offsets are fetched as stable (RequireStable is always on in the
// client).
func (c *client) Poll(ctx context.Context, n int) kgo.Fetches {
	for {
		c.pause("poll", func() bool { return ctx.Err() != nil || c.canPoll() })
		switch {
		case ctx.Err() != nil:
			return kgo.NewErrFetch(ctx.Err())
		case c.w.fault(faultPoll):
			return kgo.NewErrFetch(errFetch)
		}
		if !c.w.mix.apart {
			c.fetchOffsets()
		}
		if fetches := c.fetch(n); len(fetches) > 0 {
			c.busy = true
			c.polledApart()
			return fetches
		}
	}
}

func (c *client) canPoll() bool {
	for p := range c.held {
		if !c.w.mix.apart && c.canBegin(p) || c.canFetch(p) {
			return true
		}
	}
	return false
}

func (c *client) canBegin(partition int) bool {
	h := &c.held[partition]
	return h.assigned && !h.known && !h.revoking && c.w.stable(int32(partition))
}

func (c *client) canFetch(partition int) bool {
	h := &c.held[partition]
	return !c.w.away[clusterOfInput] && h.assigned && h.known &&
		!h.validating && !h.revoking && !h.paused &&
		(h.loss != nil || h.leader != c.w.input[partition].epoch ||
			h.position > c.w.input[partition].end || len(c.w.input[partition].from(h.position)) > 0)
}

func (c *client) fetchOffsets() {
	for p := range c.held {
		if h := &c.held[p]; c.canBegin(p) {
			committed := c.w.group.committed[p]
			at := max(0, committed.next)
			h.known, h.position, h.committed, h.begun = true, at, at, at
			h.leader, h.consumed, h.epoch = c.w.input[p].epoch, committed.epoch, committed.epoch
			h.validating = committed.next >= 0 && committed.epoch >= 0
			h.beginning = h.validating
			if h.validating && !c.w.fault(faultValidate) {
				c.validated(p)
			}
			c.w.trace(c.process.slot, "partition %d begins at %d validating=%t", p, at,
				h.validating)
		}
	}
}

// validate is the answer to OffsetForLeaderEpoch.
func (w *world) validate() {
	for _, p := range w.processes {
		if p.client == nil {
			continue
		}
		for i := range p.client.held {
			if h := &p.client.held[i]; h.validating && (w.draining || w.dice.oneIn(2)) {
				p.client.validated(i)
			} else if h.assigned && h.known && w.dice.oneIn(4) {
				p.client.learnLeader(i)
			}
		}
	}
}

// fetch takes some records of some partitions.
func (c *client) fetch(n int) kgo.Fetches {
	topic := kgo.FetchTopic{Topic: inputTopic, TopicID: c.w.topicID()}
	room := 1 + c.w.dice.n(n)
	first := c.w.dice.n(len(c.held))
	for i := range c.held {
		p := (first + i) % len(c.held)
		if !c.canFetch(p) || room == 0 || len(topic.Partitions) > 0 && c.w.dice.oneIn(3) {
			continue
		}
		h := &c.held[p]
		part := kgo.FetchPartition{Partition: int32(p), LastStableOffset: c.w.input[p].end}
		if loss := h.loss; loss != nil {
			h.loss, part.Err = nil, loss
			topic.Partitions = append(topic.Partitions, part)
			continue
		}
		if !c.learnLeader(p) {
			continue
		}
		c.outOfRange(p)
		sources := c.w.input[p].from(h.position)
		if len(sources) == 0 {
			continue
		}
		sources = sources[:min(len(sources), 1+c.w.dice.n(room))]
		for _, s := range sources {
			part.Records = append(part.Records, s.record)
		}
		room -= len(sources)
		last := sources[len(sources)-1].record
		h.position, h.consumed = last.Offset+1, last.LeaderEpoch
		h.validating = c.w.fault(faultValidate) // its leader moves
		topic.Partitions = append(topic.Partitions, part)
	}
	if len(topic.Partitions) == 0 {
		return nil
	}
	return kgo.Fetches{{Topics: []kgo.FetchTopic{topic}}}
}

// Seek implements consumer.Client. A partition that is still being validated stays where it is.
func (c *client) Seek(offsets consumer.Offsets) {
	for p, at := range offsets {
		h := &c.held[p]
		if !h.assigned || !h.known {
			continue
		}
		h.committed, h.epoch = at.Offset, at.Epoch
		if h.revoking {
			continue
		}
		if h.beginning || h.validating && c.w.mix.passesOver {
			c.w.saw(sightSeekIgnored)
			c.passedOver = true
			continue
		}
		// What the client has asked the leader is forgotten, and not asked for the new position.
		h.position, h.consumed, h.validating = at.Offset, at.Epoch, false
	}
}

// Pause implements consumer.Client.
func (c *client) Pause(partitions ...int32) {
	c.w.saw(sightHeld)
	for _, p := range partitions {
		c.held[p].paused = true
	}
}

// Resume implements consumer.Client.
func (c *client) Resume(partitions ...int32) {
	for _, p := range partitions {
		c.held[p].paused = false
	}
}

// Committed implements consumer.Client.
func (c *client) Committed() consumer.Offsets {
	offsets := make(consumer.Offsets)
	for p := range c.held {
		switch h := &c.held[p]; {
		case !h.assigned || !h.known:
		case c.w.mix.apart: // the client that reads is in no group
			offsets[int32(p)] = kgo.EpochOffset{Epoch: h.epoch, Offset: h.begun}
		default:
			offsets[int32(p)] = kgo.EpochOffset{Epoch: h.epoch, Offset: h.committed}
		}
	}
	return offsets
}

// GroupOffsets implements consumer.Client.
func (c *client) GroupOffsets(ctx context.Context) (consumer.Offsets, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	c.pause("group offsets", nil)
	if err := c.reach(ctx, "group offsets", clusterOfOutput); err != nil ||
		c.w.fault(faultRequest) {
		return nil, errors.Join(err, errAnswer)
	}
	offsets := make(consumer.Offsets)
	for p, at := range c.w.group.committed {
		if !c.w.stable(int32(p)) {
			return nil, kerr.UnstableOffsetCommit
		}
		if at.next >= 0 {
			offsets[int32(p)] = kgo.EpochOffset{Epoch: -1, Offset: at.next}
		}
	}
	return offsets, ctx.Err()
}

// Bounds implements consumer.Client.
func (c *client) Bounds(ctx context.Context) (map[int32]consumer.Bounds, error) {
	if ctx.Err() != nil {
		// without a word of the scheduler: the session may end at the moment of a measurement
		return nil, ctx.Err()
	}
	c.pause("bounds", nil)
	if err := c.reach(ctx, "bounds", clusterOfInput); err != nil || c.w.fault(faultRequest) {
		return nil, errors.Join(err, errAnswer)
	}
	bounds := make(map[int32]consumer.Bounds)
	for p, in := range c.w.input[:c.w.width] {
		bounds[int32(p)] = consumer.Bounds{End: in.end, High: in.end}
	}
	return bounds, ctx.Err()
}

// EpochEnds implements consumer.Client.
func (c *client) EpochEnds(
	ctx context.Context, epochs map[int32]int32,
) (map[int32]int64, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	c.pause("epoch ends", nil)
	if err := c.reach(ctx, "epoch ends", clusterOfInput); err != nil ||
		c.w.fault(faultRequest) {
		return nil, errors.Join(err, errAnswer)
	}
	ends := make(map[int32]int64)
	for p, epoch := range epochs {
		_, ends[p] = c.w.input[p].endOf(epoch)
	}
	return ends, ctx.Err()
}

// Fences implements consumer.Client.
func (c *client) Fences(ctx context.Context, partitions []int32) (fence.Found, error) {
	found := fence.Found{Fences: make(map[int32]fence.Fence), Skips: make(map[int32]fence.Skip)}
	for _, p := range partitions {
		c.pause("fences", func() bool { return ctx.Err() != nil || c.w.fenceStable(p) })
		for at := range clusters { // the input's is asked which topic that is
			if c.reach(ctx, "fences", at) != nil {
				return found, errFetch
			}
		}
		if !c.w.fenceStable(p) { // it was, before a cluster went away
			return found, errFetch
		}
		if ctx.Err() != nil || c.w.fault(faultReadFence) {
			return found, errFetch
		}
		if f := c.w.lastFence(p); f.Next() > 0 {
			found.Fences[p] = f
			c.w.trace(c.process.slot, "fence of partition %d is at %d", p, f.Next())
		}
		if skip := c.w.input[p].skip; skip != nil && (skip.Offset >= found.Fences[p].Next() ||
			skip.LeaderEpoch > found.Fences[p].LeaderEpoch) {
			found.Skips[p] = *skip
		}
	}
	found.Input = c.w.topicID()
	return found, nil
}

// Narrow implements consumer.Client.
func (c *client) Narrow(
	ctx context.Context, partitions []int32,
) (narrow map[int32]string, err error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	c.pause("narrow", nil)
	if err := c.reach(ctx, "narrow", clusterOfOutput); err != nil || c.w.fault(faultRequest) {
		return nil, errors.Join(err, errAnswer)
	}
	for _, p := range partitions {
		if int(p) >= c.w.outputs {
			if narrow == nil {
				narrow = make(map[int32]string)
			}
			narrow[p] = "the clean topic has no such partition"
			c.w.saw(sightNarrow)
		}
	}
	return narrow, ctx.Err()
}

// CheckOffsets implements consumer.Client. All offsets of the model are kdedup's, or adopted.
func (c *client) CheckOffsets(context.Context, []int32) error { return nil }

// HasMembers implements consumer.Client.
func (c *client) HasMembers(ctx context.Context, group string) (bool, error) {
	c.pause("has members", nil)
	if err := c.reach(ctx, "has members", clusterOfOutput); err != nil ||
		c.w.fault(faultRequest) {
		return false, errors.Join(err, errAnswer)
	}
	c.w.saw(sightRenamed)
	return group == c.w.group.name && len(c.w.group.members) > 0, nil
}

// Joined implements consumer.Client.
func (c *client) Joined() bool {
	c.w.mu.Lock() // a timer may ask
	defer c.w.mu.Unlock()
	return c.generation >= 0
}

// AllowRebalance implements consumer.Client.
func (c *client) AllowRebalance() { c.busy = false }

// Close implements consumer.Client. Requests that are under way may still arrive; an open
// transaction stays open.
func (c *client) Close() {
	if !c.process.wait(fmt.Sprint("close ", c.number), nil) {
		return // a process that dies closes nothing
	}
	c.land()
	c.die()
	if !c.w.away[clusterOfOutput] && !c.w.fault(faultLeave) {
		c.w.group.remove(c)
	}
	c.w.trace(c.process.slot, "closes its session")
}

// die leaves what was on its way to the brokers to chance.
func (c *client) die() {
	c.closed = true
	if c.commit != nil && !c.commit.landed {
		if c.w.dice.oneIn(2) {
			c.land()
		} else {
			c.commit.answer(c.w, errAnswer)
		}
	}
	for len(c.buffer) > 0 && c.w.dice.oneIn(2) {
		if c.w.mix.transactional && (c.txn == nil || c.txn.state != txnOpen) {
			break
		}
		c.send(c.nextRun(), nil)
	}
	c.buffer = nil
}
