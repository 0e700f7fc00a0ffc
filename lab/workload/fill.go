package workload

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Fill produces the records to the topic. It returns of how many different messages they are. The
// connection says at least where the brokers are. Before each record it calls before, unless that
// is nil, which may hold the record up until ctx ends, and whose error ends it.
func (s Spec) Fill(
	ctx context.Context, connection []kgo.Opt, topic string,
	before func(context.Context, *kgo.Record) error,
) (messages int, err error) {
	client, err := kgo.NewClient(append(slices.Clip(connection),
		kgo.MaxBufferedRecords(50_000), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		return 0, fmt.Errorf("fill %s: %w", topic, err)
	}
	defer client.Close()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	for it := range s.items() {
		r := s.record(topic, it)
		if before != nil {
			if err := before(ctx, r); err != nil {
				fail(err)
			}
		}
		if ctx.Err() != nil {
			break
		}
		messages = max(messages, it.message+1)
		client.Produce(ctx, r, func(_ *kgo.Record, err error) {
			if err != nil {
				fail(err)
			}
		})
	}
	// a failure is the cause of the end of ctx
	if err := cmp.Or(client.Flush(ctx), context.Cause(ctx)); err != nil {
		return 0, fmt.Errorf("fill %s: %w", topic, cmp.Or(context.Cause(ctx), err))
	}
	return messages, nil
}

func (s Spec) record(topic string, it item) *kgo.Record {
	return &kgo.Record{
		Topic: topic, Partition: it.partition, Value: s.Value(it.message),
		Headers: []kgo.RecordHeader{
			{Key: IDHeader, Value: []byte(s.ID(it.message))},
			{Key: placeHeader, Value: binary.BigEndian.AppendUint64(nil, uint64(it.place))},
		},
	}
}

// MessageOf is the number of the message that a record of a workload carries.
func MessageOf(r *kgo.Record) int { return int(binary.BigEndian.Uint64(r.Value)) }

// Each calls each with every record in the order of production, until it returns false.
func (s Spec) Each(topic string, each func(*kgo.Record) bool) {
	for it := range s.items() {
		if !each(s.record(topic, it)) {
			return
		}
	}
}
