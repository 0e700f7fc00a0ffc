// Package offsets translates a consumer group's committed offsets on the input of a pipeline into
// those on its clean topic, and back. Records keep partition and order, and the claim for a message
// ID tells which record of the input stands on the clean topic. So the pipeline must be one that
// lets no copy through.
package offsets

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/logreader"
)

// Judge tells who owns the IDs of a batch, and claims nothing; dedup.Deduper has the contract.
type Judge interface {
	Judge(ctx context.Context, messages []dedup.Message) ([]dedup.Judgement, error)
}

// Options say what is compared, and who knows the owners.
type Options struct {
	Connection []kgo.Opt // brokers, TLS, SASL, logging
	Input      logreader.Log
	// Clean was described before the group's offsets were fetched: what is forwarded later lies
	// behind its ends.
	Clean logreader.Log
	Judge Judge
}

// Place is where a consumer goes on in a partition.
type Place struct {
	Offset int64
	// Again is how many records from Offset on the consumer may have had already, at most: nobody
	// knows any more which records of the input they are.
	Again int64
}

// errNoTopicIDs refuses brokers on which an owner may be a record of any topic.
var errNoTopicIDs = errors.New("the brokers have no topic IDs, so that nobody can tell which " +
	"topic's record a claim belongs to; this needs Kafka 2.8 or later")

const (
	// window is how many offsets are read to learn where a place lies. The owner of one of them
	// must be known: not each record has an ID, and claims end.
	window = 32
	// last is how many offsets are read in the end.
	last = 1024
)

// Clean returns where the consumer of an input, which has committed the offsets by partition, goes
// on on the clean topic: at the first record that stands there for one at or behind the offset. It
// leaves out no such record. An offset that kdedup has not reached yet gives the end.
func Clean(ctx context.Context, o Options, committed map[int32]int64) (map[int32]Place, error) {
	searches := make(map[int32]*search)
	for p, offset := range committed {
		if part, ok := o.Clean.Partitions[p]; ok {
			searches[p] = &search{committed: offset, from: part.Start, to: part.End,
				known: part.Start}
		}
	}
	err := o.rounds(ctx, searches)
	places := make(map[int32]Place)
	for p, s := range searches {
		places[p] = Place{Offset: s.known, Again: s.again}
	}
	return places, err
}

// rounds read a window of each partition at a time, until all places are known.
func (o Options) rounds(ctx context.Context, searches map[int32]*search) error {
	for {
		ranges := make(map[int32]logreader.Range)
		for p, s := range searches {
			if !s.done {
				ranges[p] = s.next()
			}
		}
		if len(ranges) == 0 {
			return nil
		}
		found, err := o.sources(ctx, ranges)
		if err != nil {
			return err
		}
		for p, r := range ranges {
			searches[p].narrow(r, found[p])
		}
	}
}

// search is for a place in one partition of the clean topic, by halving.
type search struct {
	committed int64 // on the input
	// The place lies from known to to. The record before known comes from one before committed; the
	// one at to from one at committed or behind it, or to is the end.
	known, to int64
	from      int64 // what lies before it need not be read again
	again     int64
	done      bool
}

func (s *search) next() logreader.Range {
	if s.to-s.from <= window {
		s.done = true
		return logreader.Range{Start: max(s.known, s.to-last), End: s.to}
	}
	middle := s.from + (s.to-s.from)/2
	return logreader.Range{Start: middle, End: min(middle+window, s.to)}
}

// narrow takes what a window showed. Claims end in the order of time: where no owner is known, the
// place is looked for behind it.
func (s *search) narrow(r logreader.Range, records []source) {
	var unknown int64
	behind := false
	for _, record := range records {
		if behind = record.known && record.offset >= s.committed; behind {
			s.to = record.at
			break
		}
		unknown++
		if record.known {
			s.known, unknown = record.at+1, 0
		}
	}
	s.from = max(s.from, s.known)
	if !behind {
		s.from = r.End
	}
	if s.done {
		s.finish(r, unknown)
	}
}

// finish counts what lies between the two known records. Of what the last window left out, each
// offset counts, as markers of transactions cannot be told from records.
func (s *search) finish(r logreader.Range, unknown int64) {
	s.again = unknown + max(0, r.Start-s.known)
	if s.again == 0 {
		s.known = s.to
	}
}

// Input returns where the consumer of a clean topic goes on on the input: behind the record of
// which the last one stands on the clean topic that the consumer has had. Copies that were dropped
// behind it come again.
func Input(ctx context.Context, o Options, committed map[int32]int64) (map[int32]Place, error) {
	places, open := make(map[int32]Place), make(map[int32]logreader.Range)
	for p, offset := range committed {
		part, input := o.Clean.Partitions[p], o.Input.Partitions[p]
		end := min(max(offset, part.Start), part.End)
		places[p] = Place{Offset: input.Start}
		if end > part.Start {
			open[p] = logreader.Range{Start: max(part.Start, end-window), End: end}
		}
	}
	for len(open) > 0 {
		found, err := o.sources(ctx, open)
		if err != nil {
			return nil, err
		}
		for p, r := range open {
			start := o.Clean.Partitions[p].Start
			place := places[p]
			if known := place.goBack(found[p]); known || r.Start == start {
				delete(open, p)
			} else {
				open[p] = logreader.Range{Start: max(start, r.Start-2*(r.End-r.Start)),
					End: r.Start}
			}
			places[p] = place
		}
	}
	return places, nil
}

// goBack goes from the newest record back to the first that is known.
func (p *Place) goBack(records []source) (known bool) {
	for i := len(records) - 1; i >= 0; i-- {
		if records[i].known {
			p.Offset = records[i].offset + 1
			return true
		}
		p.Again++
	}
	return false
}

// source is the record of the input that stands at an offset of the clean topic.
type source struct {
	at     int64 // on the clean topic
	known  bool  // else offset means nothing
	offset int64 // on the input, in the same partition
}

// sources reads the ranges of the clean topic, and finds out who owns the IDs there.
func (o Options) sources(
	ctx context.Context, ranges map[int32]logreader.Range,
) (map[int32][]source, error) {
	if o.Input.TopicID == ([16]byte{}) {
		return nil, errNoTopicIDs
	}
	part := logreader.Log{Topic: o.Clean.Topic, TopicID: o.Clean.TopicID, Partitions: ranges}
	found := make(map[int32][]source)
	err := logreader.Read(ctx, o.Connection, part, func(records []*kgo.Record) error {
		messages := make([]dedup.Message, len(records))
		for i, r := range records {
			messages[i] = dedup.Message{Record: r, Owner: dedup.CoordinatesOf(o.Clean.TopicID, r)}
		}
		judgements, err := o.Judge.Judge(ctx, messages)
		if err != nil {
			return err
		}
		for i, j := range judgements {
			r := records[i]
			found[r.Partition] = append(found[r.Partition], source{at: r.Offset,
				known: o.standsFor(&j, r.Partition), offset: j.Owner.Offset})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("compare %s with %s: %w", o.Clean.Topic, o.Input.Topic, err)
	}
	return found, nil
}

// standsFor reports whether the owner of the record's ID is a record of the input that it stands
// for: one with the same content, in the same partition.
func (o Options) standsFor(j *dedup.Judgement, partition int32) bool {
	return j.Verdict == dedup.VerdictDuplicate && j.Owner.TopicID == o.Input.TopicID &&
		j.Owner.Partition == partition
}
