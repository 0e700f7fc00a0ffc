//go:build !race

package simulation

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
)

// An unclean leader election cuts the end of the input's log off: the new leader goes on from where
// its own log ends, in a later epoch. A client learns that from the brokers' metadata, or when it
// fetches. It then asks the leader where the epoch of its last record has ended
// (OffsetForLeaderEpoch, KIP-320), and goes back there. A client that does not know an epoch asks
// nothing, and reads on in the middle of what is new.

// cutLog is such an election.
func (w *world) cutLog() {
	number := w.dice.n(w.width)
	p := w.input[number]
	if len(p.sources) == 0 {
		return
	}
	at := max(0, len(p.sources)-1-w.dice.n(2*w.mix.batch))
	p.end = p.sources[at].record.Offset
	for _, s := range p.sources[at:] {
		s.gone, s.cut = true, true
	}
	p.cutOff = append(p.cutOff, p.sources[at:]...)
	p.sources = p.sources[:at:at]
	p.done = min(p.done, at)
	p.begin(p.epoch + 1)
	w.saw(sightCut)
	w.trace(-1, "the log of partition %d is cut at %d, and goes on in epoch %d", number, p.end,
		p.epoch)
}

// beginning is where an epoch begins in a log.
type beginning struct {
	epoch  int32
	offset int64
}

// begin begins an epoch at the end of the log.
func (p *partition) begin(epoch int32) {
	p.epoch = epoch
	for len(p.epochs) > 0 && p.epochs[len(p.epochs)-1].offset >= p.end {
		p.epochs = p.epochs[:len(p.epochs)-1]
	}
	p.epochs = append(p.epochs, beginning{epoch, p.end})
}

// endOf is what a leader answers to OffsetForLeaderEpoch: the last epoch of its log that is not
// later than one, and where that ends (LeaderEpochFileCache.endOffsetFor).
func (p *partition) endOf(epoch int32) (last int32, end int64) {
	last, end = epoch, p.end
	for i, b := range p.epochs {
		if b.epoch > epoch {
			return last, b.offset
		}
		last, end = b.epoch, p.end
		if i+1 < len(p.epochs) {
			end = p.epochs[i+1].offset
		}
	}
	return last, end
}

// learnLeader has a client hear of the partition's present leader. It reports whether records may
// be fetched: not while the client waits for an answer about its last one.
func (c *client) learnLeader(partition int) (ready bool) {
	h, p := &c.held[partition], c.w.input[partition]
	if h.leader == p.epoch {
		return !h.validating
	}
	h.leader = p.epoch
	h.validating = h.consumed >= 0
	if h.validating && !c.w.fault(faultValidate) {
		c.validated(partition)
	}
	return !h.validating
}

// validated is the answer to OffsetForLeaderEpoch: the client goes back to where its log ends.
func (c *client) validated(partition int) {
	h := &c.held[partition]
	epoch, end := c.w.input[partition].endOf(h.consumed)
	h.validating, h.beginning, h.consumed = false, false, epoch
	if end < h.position {
		c.w.saw(sightWentBack)
		c.w.trace(c.process.slot, "partition %d goes back from %d to %d", partition, h.position,
			end)
		h.loss = &kgo.ErrDataLoss{Topic: inputTopic, Partition: int32(partition),
			ConsumedTo: h.position, ResetTo: end}
		h.position = end
	}
}

// outOfRange is what becomes of a position behind the end of the log: the client begins at the
// log's beginning (ConsumeResetOffset).
func (c *client) outOfRange(partition int) {
	h, p := &c.held[partition], c.w.input[partition]
	if h.position <= p.end {
		return
	}
	c.w.trace(c.process.slot, "offset %d of partition %d is out of range", h.position, partition)
	h.position, h.consumed = 0, -1
	p.rewinds++
	c.w.saw(sightOutOfRange)
}

// toSendAgain is a record of the partition that a producer has to send again, if there is one: it
// was cut off.
func (w *world) toSendAgain(partition int) *source {
	cutOff := w.input[partition].cutOff
	if len(cutOff) == 0 || !w.dice.oneIn(3) {
		return nil
	}
	if s := cutOff[w.dice.n(len(cutOff))]; s.id != "" {
		return s
	}
	return nil
}

// lost tells that the record was cut off before it was forwarded. docs/guarantees.md says what that
// loses, and repeats.
func (s *source) lost() bool { return s.cut && !s.passed }

// lostOwner tells that an ID was owned by such a record, or by one that took its place and was
// compacted away: a copy of the first may stand for both.
func (w *world) lostOwner(id dedup.ID) bool {
	truth := w.claims[id]
	return truth != nil && slices.ContainsFunc(truth.episodes, func(e *episode) bool {
		return e.owner.lost() || e.owner.gone && slices.ContainsFunc(
			w.input[e.owner.record.Partition].cutOff, func(s *source) bool {
				return s.lost() && s.record.Offset == e.owner.record.Offset
			})
	})
}
