package logreader

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Place is where a record stands. The topic's ID is zero on brokers without such (before 2.8).
type Place struct {
	TopicID   [16]byte
	Partition int32
	Offset    int64
}

// At reads single records, which may stand far apart: a request for each that the answers before it
// did not bring along. The topic is that of places without a topic's ID. Records that are gone, or
// whose partition has no leader, are left out. The error ends it; what was found until then comes
// with it.
func At(
	ctx context.Context, client *kgo.Client, topic string, places []Place,
) (map[Place]*kgo.Record, error) {
	found := make(map[Place]*kgo.Record, len(places))
	topics, err := topicsOf(ctx, client, topic, places)
	if err != nil {
		return found, fmt.Errorf("read single records: %w", err)
	}
	places = slices.Clone(places)
	slices.SortFunc(places, func(a, b Place) int {
		return cmp.Or(slices.Compare(a.TopicID[:], b.TopicID[:]),
			cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	})
	fetched := make(map[Place]*kgo.Record)
	for _, p := range places {
		of := topics[p.TopicID]
		leader, has := of.leaders[p.Partition]
		if !has {
			continue
		}
		if fetched[p] == nil {
			clear(fetched)
			if err := fetchAt(ctx, client, leader, of, p, fetched); err != nil {
				return found, fmt.Errorf("read %s[%d]@%d: %w", of.name, p.Partition, p.Offset, err)
			}
		}
		if r := fetched[p]; r != nil {
			found[p] = r
		}
	}
	return found, nil
}

// fetchAt adds the records that one fetch brings.
func fetchAt(
	ctx context.Context, client *kgo.Client, leader int32, of located, p Place,
	to map[Place]*kgo.Record,
) error {
	from := Place{of.id, p.Partition, p.Offset}
	answer, err := fetch(ctx, client, leader, from, of.name, false)
	if err != nil || answer == nil {
		return err
	}
	if err := kerr.ErrorForCode(answer.ErrorCode); err == kerr.OffsetOutOfRange {
		return nil // retention took it
	} else if err != nil {
		return err
	}
	part, _ := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
		Offset: p.Offset, IsolationLevel: kgo.ReadCommitted(),
		Topic: of.name, Partition: p.Partition,
	}, answer, kgo.DefaultDecompressor(), nil)
	for _, r := range part.Records {
		to[Place{p.TopicID, p.Partition, r.Offset}] = r
	}
	return part.Err
}

// located is a topic that there is.
type located struct {
	id      [16]byte
	name    string
	leaders map[int32]int32
}

// topicsOf asks for the topics of the places, by their IDs.
func topicsOf(
	ctx context.Context, client *kgo.Client, topic string, places []Place,
) (map[[16]byte]located, error) {
	req := kmsg.NewPtrMetadataRequest()
	asked := make(map[[16]byte]bool)
	for _, p := range places {
		if asked[p.TopicID] {
			continue
		}
		asked[p.TopicID] = true
		t := kmsg.NewMetadataRequestTopic()
		if t.TopicID = p.TopicID; p.TopicID == [16]byte{} {
			t.Topic = &topic
		}
		req.Topics = append(req.Topics, t)
	}
	answer, err := req.RequestWith(ctx, client)
	if err != nil {
		return nil, err
	}
	topics := make(map[[16]byte]located)
	for _, t := range answer.Topics {
		if t.ErrorCode != 0 || t.Topic == nil {
			continue // it was deleted, or rights do not suffice
		}
		l := located{t.TopicID, *t.Topic, make(map[int32]int32)}
		for _, p := range t.Partitions {
			if p.Leader >= 0 {
				l.leaders[p.Partition] = p.Leader
			}
		}
		topics[t.TopicID] = l
		if *t.Topic == topic && asked[[16]byte{}] {
			topics[[16]byte{}] = l
		}
	}
	return topics, nil
}
