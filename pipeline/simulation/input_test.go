//go:build !race

package simulation

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/fence"
)

// source is a record of the input and what became of it.
type source struct {
	record    *kgo.Record
	pristine  kgo.Record // what record must still be at the end
	id        dedup.ID   // empty: it has none
	number    int        // of the ID
	oversize  bool       // too large for the clean topic
	ahead     bool       // its time is too far ahead for every topic but the input
	invalid   bool       // the clean and the duplicates topic refuse it
	kind      kind
	handled   bool // its offset was committed, or with at_least_once its fence was written
	commits   int  // how often its offset was committed
	gone      bool // compacted away, or cut off
	cut       bool // an unclean election has cut it off
	skipped   bool // an operator wants it out of the way
	unclaimed bool // it passed in an outage of the store
	// forwarded for good as the owner of its ID, or without an answer of the store
	passed bool
	// on the clean topic, and behind a fence, by a member that had lost the partition: with
	// at_least_once the next one goes on behind that fence, whoever claimed the record meanwhile
	outlived bool
}

func (s *source) String() string {
	return fmt.Sprintf("%d@%d %q", s.record.Partition, s.record.Offset, s.id)
}

// undeliverable tells that the clean topic does not take it.
func (s *source) undeliverable() bool { return s.oversize || s.ahead || s.invalid }

func (s *source) owner() dedup.Coordinates {
	return dedup.Coordinates{
		TopicID: inputID, Partition: s.record.Partition, Offset: s.record.Offset,
		LeaderEpoch: s.record.LeaderEpoch,
	}
}

func (s *source) sameContent(o *source) bool {
	return bytes.Equal(s.record.Key, o.record.Key) && bytes.Equal(s.record.Value, o.record.Value)
}

// partition is a partition of the input. Offsets have gaps where the producers' transactions
// have their markers; leader epochs rise.
type partition struct {
	sources []*source
	cutOff  []*source // what an unclean election took away
	end     int64
	epoch   int32       // of the leader
	epochs  []beginning // of the records that are there
	done    int         // sources before this index were committed at least once
	rewinds int
	skip    *fence.Skip // the last word of an operator
}

// from returns the sources at and after an offset that are still there.
func (p *partition) from(offset int64) (left []*source) {
	for _, s := range p.sources[p.index(offset):] {
		if !s.gone {
			left = append(left, s)
		}
	}
	return left
}

func (p *partition) index(offset int64) int {
	lo, hi := 0, len(p.sources)
	for lo < hi {
		if mid := (lo + hi) / 2; p.sources[mid].record.Offset < offset {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// at is the record with an offset of an epoch, also of those that were cut off.
func (p *partition) at(offset int64, epoch int32) *source {
	if i := p.index(offset); i < len(p.sources) && p.sources[i].is(offset, epoch) {
		return p.sources[i]
	}
	for _, s := range p.cutOff {
		if s.is(offset, epoch) {
			return s
		}
	}
	return nil
}

func (s *source) is(offset int64, epoch int32) bool {
	return s.record.Offset == offset && s.record.LeaderEpoch == epoch
}

var inputID = [16]byte{'i', 'n', 'p', 'u', 't'}

const (
	inputTopic = "orders"
	cleanMax   = 1000 // bytes that the clean topic admits

	tooFarAhead = 4_000_000_000_000 // the year 2096, in milliseconds
)

// produce appends one record. Copies have the same key and value, but headers of their own, as
// producers that retry make them. Every record has a timestamp of its own: it names the source of
// what arrives on the other topics.
func (w *world) produce() {
	if w.produced >= w.mix.records {
		return
	}
	w.produced++
	p := w.dice.n(w.width)
	s := &source{
		oversize: w.dice.oneIn(w.mix.oversize), ahead: w.dice.oneIn(w.mix.ahead),
		invalid: w.dice.oneIn(w.mix.invalid),
	}
	s.record = &kgo.Record{Topic: inputTopic,
		Timestamp: time.UnixMilli(1_000_000 + int64(w.produced))}
	if s.ahead {
		s.record.Timestamp = time.UnixMilli(tooFarAhead + int64(w.produced))
	}
	switch {
	case w.dice.oneIn(w.mix.missing):
		s.record.Value, s.oversize = []byte("no id"), false
	case w.dice.oneIn(w.mix.exempt):
		s.record.Value, s.oversize, s.kind = []byte("heartbeat"), false, exempt
	case w.dice.oneIn(w.mix.tombstones):
		s.record.Key, s.oversize, s.kind = []byte("key"), false, tombstone
	default:
		if w.fill(s, w.toSendAgain(p)); w.mix.compacted {
			p = s.number / 2 % w.mix.first // as the key says
		}
	}
	if s.kind != exempt {
		s.record.Headers = append(s.record.Headers, kgo.RecordHeader{Key: kindHeader,
			Value: []byte("order")})
	}
	s.record.Partition = int32(p)
	w.appendInput(w.input[p], s)
	w.bySource[s.record.Timestamp.UnixMilli()] = s
	w.trace(-1, "produce %v oversize=%t ahead=%t invalid=%t", s, s.oversize, s.ahead, s.invalid)
}

// kind of a record is whether an ID is looked for in it.
type kind uint8

const (
	ordinary  kind = iota
	exempt         // only_if does not hold
	tombstone      // it has no value
)

// kindHeader is on all records of which only_if holds.
const kindHeader = "kind"

// fill gives the record an ID and a value: that of another one, if the producer sends it again.
func (w *world) fill(s, again *source) {
	number := w.ids
	switch {
	case again != nil:
		number = again.number
	case w.ids > 0 && w.dice.oneIn(w.mix.copies):
		number = max(0, w.ids-1-w.dice.n(w.mix.recent))
	default:
		w.ids++
	}
	s.number = number
	s.id = dedup.ID(fmt.Sprint("id-", number))
	text := fmt.Sprint("order ", number)
	if w.dice.oneIn(w.mix.conflicts) {
		text = fmt.Sprint("other order ", number)
	}
	if s.oversize {
		text += strings.Repeat("x", 2*cleanMax)
	}
	s.record.Key = [][]byte{nil, {}, []byte("key")}[number%3]
	if w.mix.compacted {
		// two IDs have one: a later state removes the earlier one
		s.record.Key = fmt.Append(nil, "key ", number/2)
	}
	s.record.Value = []byte(text)
	s.record.Headers = []kgo.RecordHeader{
		{Key: "attempt", Value: []byte(fmt.Sprint(w.produced))}, {Key: "id", Value: []byte(s.id)},
		{Key: "null"},
	}
}

// compact removes a record that has a later one with its key.
func (w *world) compact() {
	p := w.input[w.dice.n(len(w.input))]
	if len(p.sources) == 0 {
		return
	}
	at := w.dice.n(len(p.sources))
	s := p.sources[at]
	if s.gone || s.record.Key == nil ||
		!slices.ContainsFunc(p.sources[at+1:], func(o *source) bool {
			return !o.gone && bytes.Equal(o.record.Key, s.record.Key)
		}) {
		return
	}
	s.gone = true
	if truth := w.claims[s.id]; s.id != "" && truth != nil && truth.last().owner == s &&
		truth.last().final == nil {
		w.saw(sightCompacted)
	}
	w.trace(-1, "%v is compacted away", s)
}

func (w *world) appendInput(p *partition, s *source) {
	if w.dice.oneIn(w.mix.gaps) {
		p.end += int64(1 + w.dice.n(3))
	}
	if w.dice.oneIn(50) || len(p.epochs) == 0 {
		p.begin(p.epoch + 1)
	}
	s.record.Offset, s.record.LeaderEpoch = p.end, p.epoch
	p.end++
	p.sources = append(p.sources, s)
	s.pristine = *s.record
	s.pristine.Headers = append([]kgo.RecordHeader(nil), s.record.Headers...)
}
