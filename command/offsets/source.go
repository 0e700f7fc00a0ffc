package offsets

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/connect/logreader"
	"github.com/kdedup/kdedup/dedup"
)

// source is what is known about the record of the input that stands at an offset of the clean
// topic.
type source struct {
	record *kgo.Record // on the clean topic
	at     int64       // its offset there
	known  bool        // else offset means nothing
	offset int64       // of the ID's owner on the input, in the same partition
}

// each reads ranges of the clean topic, finds out who owns the IDs there, and calls take with a
// part of one partition at a time, in its order.
func (o Options) each(
	ctx context.Context, ranges map[int32]logreader.Range, take func(int32, []source) error,
) error {
	if o.Input.TopicID == ([16]byte{}) {
		return errNoTopicIDs
	}
	part := logreader.Log{Topic: o.Clean.Topic, TopicID: o.Clean.TopicID, Partitions: ranges}
	err := logreader.Read(ctx, o.cleanConnection(), part, func(records []*kgo.Record) error {
		messages := make([]dedup.Message, len(records))
		for i, r := range records {
			messages[i] = dedup.Message{Record: r, Owner: dedup.CoordinatesOf(o.Clean.TopicID, r)}
		}
		judgements, err := o.Judge.Judge(ctx, messages)
		if err != nil {
			return err
		}
		sources := make([]source, len(records))
		for i, r := range records {
			j := &judgements[i]
			sources[i] = source{record: r, at: r.Offset, known: o.standsFor(j, r.Partition),
				offset: j.Owner.Offset}
		}
		return take(records[0].Partition, sources)
	})
	if err != nil {
		return fmt.Errorf("compare %s with %s: %w", o.Clean.Topic, o.Input.Topic, err)
	}
	return nil
}

// standsFor reports whether the owner of the record's ID is a record of the input that it stands
// for: one with the same content, in the same partition.
func (o Options) standsFor(j *dedup.Judgement, partition int32) bool {
	return j.Verdict == dedup.VerdictDuplicate && j.Owner.TopicID == o.Input.TopicID &&
		j.Owner.Partition == partition
}
