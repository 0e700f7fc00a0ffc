package client

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// stableOffsets are a group's offsets beside all partitions of a topic, -1 where there is none.
// That of a partition has the error UnstableOffsetCommit while a transaction that is not decided
// has one, too.
//
// The request names the partitions. One for all that a group has, which is what kadm sends, leaves
// out those that have no offset yet: the first one, in a transaction that is open, would look like
// none (OffsetMetadataManager.fetchAllOffsets; seen with Kafka 4.3.1).
func stableOffsets(
	ctx context.Context, client *kgo.Client, group, topic string,
) (map[int32]kadm.OffsetResponse, error) {
	listed, err := kadm.NewClient(client).ListTopics(ctx, topic)
	if err == nil {
		err = listed[topic].Err
	}
	if err != nil {
		return nil, fmt.Errorf("list partitions of %s: %w", topic, err)
	}
	asked := kmsg.NewOffsetFetchRequestGroupTopic()
	asked.Topic, asked.Partitions = topic, listed[topic].Partitions.Numbers()
	of := kmsg.NewOffsetFetchRequestGroup()
	of.Group, of.Topics = group, append(of.Topics, asked)
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Groups, req.RequireStable = append(req.Groups, of), true
	answer, err := req.RequestWith(ctx, client)
	if err != nil {
		return nil, err
	}
	offsets := make(map[int32]kadm.OffsetResponse)
	for _, g := range answer.Groups {
		if err := kerr.ErrorForCode(g.ErrorCode); err != nil {
			return nil, err
		}
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				at := kadm.Offset{Topic: topic, Partition: p.Partition, At: p.Offset,
					LeaderEpoch: p.LeaderEpoch}
				if p.Metadata != nil {
					at.Metadata = *p.Metadata
				}
				offsets[p.Partition] = kadm.OffsetResponse{Offset: at,
					Err: kerr.ErrorForCode(p.ErrorCode)}
			}
		}
	}
	return offsets, nil
}
