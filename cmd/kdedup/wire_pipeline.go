package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/forwarder"
	"github.com/kdedup/kdedup/internal/kafka"
	"github.com/kdedup/kdedup/pipeline"
)

// pipeline puts the lanes of an entry together, whose scope is registered.
func (p *process) pipeline(e entry) *pipeline.Pipeline {
	members := p.families.consumer.For(e.Input)
	return pipeline.New(pipeline.Options{
		Name:  e.Input,
		Lanes: e.Lanes,
		Join: func(ctx context.Context, lane int) (pipeline.Session, *forwarder.Topics, error) {
			return p.join(ctx, e.Topic, lane, members)
		},
		Judge: func(lane int) pipeline.Judge {
			metrics := p.families.dedup.For(e.Input, strconv.Itoa(lane))
			return dedup.New(e.scope(), e.extractor, p.store, retryOf(e.Topic), metrics, p.log.With("topic", e.Input, "lane", lane))
		},
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
func (p *process) join(ctx context.Context, t config.Topic, lane int, members *consumer.Metrics) (pipeline.Session, *forwarder.Topics, error) {
	limits, err := kafka.Limits(ctx, p.admin, t)
	if err != nil {
		return nil, nil, err
	}
	topics := &forwarder.Topics{
		Output: t.Output, Duplicates: t.DuplicatesTopic, DeadLetter: t.DeadLetterTopic,
		MaxBytes: limits, ByKey: t.Partitioner == config.PartitionerByKey,
	}
	options := p.memberOptions(t, lane)
	options.Producer, options.Outputs, options.Metrics = topics.Producer(), topics.Names(), members
	if t.Delivery == config.DeliveryAtLeastOnce {
		session, err := consumer.JoinAtLeastOnce(options)
		return session, topics, err
	}
	session, err := consumer.JoinTransactional(ctx, options)
	return session, topics, err
}

// member is the name of a lane: the transactional ID, for example.
func member(c config.Config, t config.Topic, lane int) string {
	return fmt.Sprintf("%s-%s-%d", t.ConsumerGroup, c.Instance, lane)
}

func members(c config.Config, t config.Topic) []string {
	all := make([]string, t.Lanes)
	for lane := range all {
		all[lane] = member(c, t, lane)
	}
	return all
}

func (p *process) memberOptions(t config.Topic, lane int) consumer.Options {
	member := member(p.config(), t, lane)
	log := p.log.With("topic", t.Input, "lane", lane)
	return consumer.Options{
		Connection: p.connector.Options(member, p.registry, log),
		Input:      t.Input, ConsumerGroup: t.ConsumerGroup, FenceTopic: t.FenceTopic,
		Member: member, Static: t.StaticMember, ServerSide: t.GroupProtocol == config.ProtocolConsumer,
		AcceptSkips:  t.OnSkip == config.ActionAccept,
		BatchRecords: t.BatchRecords, BatchBytes: t.BatchBytes, FetchBytes: t.FetchBytes, SessionTimeout: t.SessionTimeout,
		Logger: log,
	}
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
	return pipeline.Policy{
		Mode: modes[t.Mode], OnMissingID: choices[t.OnMissingID],
		OnConflict: choices[t.OnConflict], OnReplay: choices[t.OnReplay],
	}
}
