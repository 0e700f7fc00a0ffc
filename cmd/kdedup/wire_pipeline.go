package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/consumer/client"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/fence"
	"github.com/kdedup/kdedup/forwarder"
	"github.com/kdedup/kdedup/internal/kafka"
	"github.com/kdedup/kdedup/pipeline"
)

// pipeline puts the lanes of an entry together, whose scope is registered.
func (p *process) pipeline(e entry) *pipeline.Pipeline {
	members := p.families.consumer.For(e.Input)
	rooms := make([]*consumer.Room, e.Lanes) // they outlive sessions
	for lane := range rooms {
		rooms[lane] = consumer.NewRoom(e.BatchRecords, e.BatchBytes, batchTime(e.Topic), members.Room(lane))
	}
	return pipeline.New(pipeline.Options{
		Name:  e.Input,
		Lanes: e.Lanes,
		Join: func(ctx context.Context, lane int) (pipeline.Session, *forwarder.Topics, error) {
			return p.join(ctx, e, lane, rooms[lane], members)
		},
		Judge: func(lane int) pipeline.Judge {
			metrics := p.families.dedup.For(e.Input, strconv.Itoa(lane))
			return dedup.New(e.scope(), e.extractor, p.store, retryOf(e.Topic), metrics, p.log.With("topic", e.Input, "lane", lane))
		},
		Identify:        p.identify(e),
		Policy:          policyOf(e.Topic),
		TTL:             e.TTL,
		ShutdownTimeout: p.config().ShutdownTimeout,
		Collectors:      p.families.pipeline,
		Tracer:          p.tracer(e),
		Logger:          p.log,
	})
}

// join makes a lane's member of the consumer group. The output's limits are read each time: they
// may be why the last session failed.
func (p *process) join(ctx context.Context, e entry, lane int, room *consumer.Room, members *consumer.Metrics) (pipeline.Session, *forwarder.Topics, error) {
	t := e.Topic
	limits, err := kafka.LimitsOf(ctx, p.admin, t)
	if err != nil {
		return nil, nil, err
	}
	topics := &forwarder.Topics{
		Output: t.Output, Duplicates: t.DuplicatesTopic, DeadLetter: t.DeadLetterTopic,
		MaxBytes: limits.MaxBytes, Compacted: limits.Compacted, ByKey: t.Partitioner == config.PartitionerByKey,
	}
	options := p.memberOptions(t, lane)
	options.Room = room
	options.Store = p.identity
	options.CheckStore = func(ctx context.Context, f fence.Fence) error { return p.knowledge.checkFence(ctx, e, f) }
	options.Producer, options.Outputs, options.Metrics = topics.Producer(), topics.Names(), members
	if t.Delivery == config.DeliveryAtLeastOnce {
		session, err := client.JoinAtLeastOnce(options)
		return session, topics, err
	}
	session, err := client.JoinTransactional(ctx, options)
	return session, topics, err
}

func transactionalIDs(c config.Config, t config.Topic) []string {
	all := make([]string, t.Lanes)
	for lane := range all {
		all[lane] = client.TransactionalID(t.ConsumerGroup, c.Instance, lane)
	}
	return all
}

func (p *process) memberOptions(t config.Topic, lane int) client.Options {
	instance := p.config().Instance
	member := fmt.Sprintf("%s-%s-%d", t.ConsumerGroup, instance, lane)
	log := p.log.With("topic", t.Input, "lane", lane)
	return client.Options{
		Options: consumer.Options{
			Input: t.Input, ConsumerGroup: t.ConsumerGroup, FenceTopic: t.FenceTopic, AcceptSkips: t.OnSkip == config.ActionAccept,
			TTL: t.TTL, TransactionTimeout: t.TransactionTimeout, Logger: log,
		},
		Connection: func() []kgo.Opt { return p.connector.Options(member, p.registry, log) },
		Member:     member, Static: t.StaticMember, ServerSide: t.GroupProtocol == config.ProtocolConsumer,
		TransactionalID:        client.TransactionalID(t.ConsumerGroup, instance, lane),
		EarlierTransactionalID: client.EarlierTransactionalID(t.ConsumerGroup, instance, lane),
		FromEnd:                t.Start == config.StartLatest,
		Earlier:                earlierOf(t),
		FetchBytes:             t.FetchBytes, UnpackedBytes: t.UnpackedBytes, SessionTimeout: t.SessionTimeout,
	}
}

// batchTime is how long the forwards of a batch may take: then the broker aborts them, or gives the partitions to others.
func batchTime(t config.Topic) time.Duration {
	if t.Delivery == config.DeliveryAtLeastOnce {
		return client.RebalanceTimeout
	}
	return t.TransactionTimeout
}

func groupOf(t config.Topic) client.Group {
	return client.Group{
		Name: t.ConsumerGroup, Input: t.Input, FenceTopic: t.FenceTopic, FromEnd: t.Start == config.StartLatest, Earlier: earlierOf(t),
	}
}

// earlierOf is the group whose claims the entry goes on with: a scope_group that is not its own group is the name that the
// group had before, or one that several inputs share.
func earlierOf(t config.Topic) client.Earlier {
	topic := config.FenceTopicOf(t.ScopeGroup)
	if t.ScopeGroup == t.ConsumerGroup || topic == t.FenceTopic {
		return client.Earlier{}
	}
	return client.Earlier{Group: t.ScopeGroup, FenceTopic: topic}
}

func sourceOf(m config.MessageID) dedup.Source {
	s := dedup.Source{From: m.From, Name: m.Name, Path: m.Path}
	for _, part := range m.Parts {
		s.Parts = append(s.Parts, sourceOf(part))
	}
	return s
}

func scopeOf(t config.Topic, extractor string) dedup.Scope {
	return dedup.Scope{ConsumerGroup: t.ScopeGroup, Name: t.Scope, TTL: t.TTL, Buckets: t.Buckets, Extractor: extractor}
}

func retryOf(t config.Topic) dedup.Retry {
	retry := dedup.DefaultRetry
	if t.OnStoreOutage == config.ActionForward {
		retry.GiveUpAfter = t.OutageGrace
	}
	return retry
}

// policyOf maps names that config has checked.
func policyOf(t config.Topic) pipeline.Policy {
	choices := map[string]pipeline.Choice{
		config.ActionDrop: pipeline.Drop, config.ActionForward: pipeline.Forward,
		config.ActionDeadLetter: pipeline.DeadLetter, config.ActionFail: pipeline.Fail,
	}
	modes := map[string]pipeline.Mode{
		config.ModeEnforce: pipeline.Enforce, config.ModeAnnotate: pipeline.Annotate, config.ModeObserve: pipeline.Observe,
	}
	undeliverable := map[string]pipeline.Undeliverable{
		config.ActionDeadLetter: pipeline.BuryUndeliverable, config.ActionDrop: pipeline.DropUndeliverable,
		config.ActionStop: pipeline.StopAtUndeliverable,
	}
	return pipeline.Policy{
		Mode: modes[t.Mode], OnMissingID: choices[t.OnMissingID],
		OnConflict: choices[t.OnConflict], OnReplay: choices[t.OnReplay],
		OnUndeliverable: undeliverable[t.OnUndeliverable],
	}
}
