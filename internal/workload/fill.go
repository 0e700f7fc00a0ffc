package workload

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Fill produces the records to the topic and returns of how many different messages they are. The
// connection says at least where the brokers are.
func (s Spec) Fill(
	ctx context.Context, connection []kgo.Opt, topic string,
) (messages int, err error) {
	client, err := kgo.NewClient(append(slices.Clip(connection),
		kgo.MaxBufferedRecords(50_000), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		return 0, fmt.Errorf("fill %s: %w", topic, err)
	}
	defer client.Close()
	var (
		failure error
		once    sync.Once
	)
	for it := range s.items() {
		messages = max(messages, it.message+1)
		client.Produce(ctx, s.record(topic, it), func(_ *kgo.Record, err error) {
			if err != nil {
				once.Do(func() { failure = err })
			}
		})
	}
	if err := client.Flush(ctx); err != nil {
		return 0, fmt.Errorf("fill %s: %w", topic, err)
	}
	if failure != nil {
		return 0, fmt.Errorf("fill %s: %w", topic, failure)
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
