package logreader

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The last offsets of a range may hold nothing that a poll returns: records of an aborted
// transaction whose marker lies behind the range, or places that compaction has emptied. A poll
// would wait there for ever, so the reader fetches from that place itself: the answer tells how far
// nothing is to be seen.

const (
	probeBytes   = 1 << 20
	probeMaxWait = 100 // milliseconds
)

// skipInvisible finishes the partitions that have nothing more to show.
func (r *reader) skipInvisible(ctx context.Context) error {
	meta, err := kadm.NewClient(r.client).Metadata(ctx, r.log.Topic)
	if err != nil {
		return nil // polling goes on and reports what does not fix
	}
	detail := meta.Topics[r.log.Topic]
	if errors.Is(detail.Err, kerr.UnknownTopicOrPartition) || detail.Err == nil &&
		detail.ID != r.log.TopicID {
		return ErrCut
	}
	for p, at := range r.open {
		leader := detail.Partitions[p].Leader
		if leader < 0 {
			continue
		}
		if err := r.skip(ctx, leader, p, at); err != nil {
			return fmt.Errorf("partition %d: %w", p, err)
		}
		if at.next >= at.end {
			r.finish(p)
		}
	}
	return nil
}

// skip moves the position over what cannot be seen, up to the next record that a poll will bring.
func (r *reader) skip(ctx context.Context, leader, partition int32, at *position) error {
	for at.next < at.end {
		answer, err := r.fetch(ctx, leader, partition, at.next)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil || answer == nil || answer.ErrorCode != 0 {
			return nil // as above
		}
		if len(answer.RecordBatches) == 0 {
			if answer.LastStableOffset >= at.end { // all of it is stable, and nothing is there
				at.next = at.end
			}
			return nil
		}
		fetched, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
			Offset: at.next, IsolationLevel: r.isolation(), KeepControlRecords: r.all,
			Topic: r.log.Topic, Partition: partition,
		}, answer, kgo.DefaultDecompressor(), nil)
		if len(fetched.Records) > 0 && fetched.Records[0].Offset < at.end || next <= at.next {
			return fetched.Err
		}
		at.next = next
	}
	return nil
}

func (r *reader) fetch(
	ctx context.Context, leader, partition int32, from int64,
) (*kmsg.FetchResponseTopicPartition, error) {
	return fetch(ctx, r.client, leader, Place{r.log.TopicID, partition, from}, r.log.Topic, r.all)
}

// fetch asks the leader for what is there from a place on; nil if the answer has nothing of it.
func fetch(
	ctx context.Context, client *kgo.Client, leader int32, from Place, name string, all bool,
) (*kmsg.FetchResponseTopicPartition, error) {
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = probeMaxWait, 1, probeBytes
	if !all {
		req.IsolationLevel = 1 // read_committed
	}
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic, topic.TopicID = name, from.TopicID
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = from.Partition, from.Offset, probeBytes
	topic.Partitions = append(topic.Partitions, p)
	req.Topics = append(req.Topics, topic)
	answer, err := client.Broker(int(leader)).RetriableRequest(ctx, req)
	if err != nil {
		return nil, err
	}
	for _, t := range answer.(*kmsg.FetchResponse).Topics {
		for i := range t.Partitions {
			return &t.Partitions[i], nil
		}
	}
	return nil, nil
}
