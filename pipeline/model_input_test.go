package pipeline

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
)

// modelSource is a record of the input and what became of it.
type modelSource struct {
	record   *kgo.Record
	pristine kgo.Record // what record must still be at the end
	id       dedup.ID   // empty: it has none
	oversize bool       // too large for the clean topic
	commits  int        // how often its offset was committed
	passed   bool       // forwarded for good as the owner of its ID, or without an answer of the store
}

func (s *modelSource) String() string {
	return fmt.Sprintf("%d@%d %q", s.record.Partition, s.record.Offset, s.id)
}

func (s *modelSource) owner() dedup.Coordinates {
	return dedup.Coordinates{
		TopicID: modelTopicID, Partition: s.record.Partition, Offset: s.record.Offset, LeaderEpoch: s.record.LeaderEpoch,
	}
}

func (s *modelSource) sameContent(o *modelSource) bool {
	return bytes.Equal(s.record.Key, o.record.Key) && bytes.Equal(s.record.Value, o.record.Value)
}

// modelPartition is a partition of the input. Offsets have gaps where the producers' transactions
// have their markers; leader epochs rise.
type modelPartition struct {
	sources []*modelSource
	end     int64
	epoch   int32
	done    int // sources before this index were committed at least once
	rewinds int
}

// from returns the sources at and after an offset.
func (p *modelPartition) from(offset int64) []*modelSource {
	lo, hi := 0, len(p.sources)
	for lo < hi {
		if mid := (lo + hi) / 2; p.sources[mid].record.Offset < offset {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return p.sources[lo:]
}

var modelTopicID = [16]byte{'i', 'n', 'p', 'u', 't'}

const (
	modelInput    = "orders"
	modelCleanMax = 1000 // bytes that the clean topic admits
)

// produce appends one record. Copies have the same key and value, but headers of their own, as
// producers that retry make them. Every record has a timestamp of its own: it names the source of
// what arrives on the other topics.
func (w *modelWorld) produce() {
	if w.produced >= w.mix.records {
		return
	}
	w.produced++
	p := w.dice.n(w.mix.partitions)
	s := &modelSource{oversize: w.dice.oneIn(w.mix.oversize)}
	s.record = &kgo.Record{Topic: modelInput, Partition: int32(p), Timestamp: time.UnixMilli(1_000_000 + int64(w.produced))}
	if w.dice.oneIn(w.mix.missing) {
		s.record.Value, s.oversize = []byte("no id"), false
	} else {
		w.fill(s)
	}
	w.appendInput(w.input[p], s)
	w.bySource[s.record.Timestamp.UnixMilli()] = s
	w.trace(-1, "produce %v oversize=%t", s, s.oversize)
}

func (w *modelWorld) fill(s *modelSource) {
	number := w.ids
	if w.ids > 0 && w.dice.oneIn(w.mix.copies) {
		number = max(0, w.ids-1-w.dice.n(w.mix.recent))
	} else {
		w.ids++
	}
	s.id = dedup.ID(fmt.Sprint("id-", number))
	text := fmt.Sprint("order ", number)
	if w.dice.oneIn(w.mix.conflicts) {
		text = fmt.Sprint("other order ", number)
	}
	if s.oversize {
		text += strings.Repeat("x", 2*modelCleanMax)
	}
	s.record.Key = [][]byte{nil, {}, []byte("key")}[number%3]
	s.record.Value = []byte(text)
	s.record.Headers = []kgo.RecordHeader{
		{Key: "attempt", Value: []byte(fmt.Sprint(w.produced))}, {Key: "id", Value: []byte(s.id)}, {Key: "null"},
	}
}

func (w *modelWorld) appendInput(p *modelPartition, s *modelSource) {
	if w.dice.oneIn(w.mix.gaps) {
		p.end += int64(1 + w.dice.n(3))
	}
	if w.dice.oneIn(50) {
		p.epoch++
	}
	s.record.Offset, s.record.LeaderEpoch = p.end, p.epoch
	p.end++
	p.sources = append(p.sources, s)
	s.pristine = *s.record
	s.pristine.Headers = append([]kgo.RecordHeader(nil), s.record.Headers...)
}
