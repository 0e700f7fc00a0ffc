package process

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/consumer/client"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/fence"
	"github.com/kdedup/kdedup/forwarder"
	"github.com/kdedup/kdedup/pipeline"
)

// pipeline puts the lanes of an entry together, whose scope is registered.
func (p *running) pipeline(e connect.Entry) *pipeline.Pipeline {
	members := p.families.consumer.For(e.Input)
	limits := make([]*consumer.BatchLimit, e.Lanes) // they outlive sessions
	for lane := range limits {
		limits[lane] = consumer.NewBatchLimit(e.BatchRecords, int(e.BatchBytes), batchTime(e.Topic),
			members.BatchLimit(lane))
	}
	return pipeline.New(pipeline.Options{
		Name:  e.Input,
		Lanes: e.Lanes,
		Join: func(ctx context.Context, lane int) (pipeline.Session, *forwarder.Topics, error) {
			return p.join(ctx, e, lane, limits[lane], members)
		},
		Judge: func(lane int) pipeline.Judge {
			return dedup.New(laneScope(e), p.store, dedup.Options{
				Extractor: e.Extractor, Retry: connect.RetryOf(e.Topic),
				Observer: p.families.claims.For(e.Input, strconv.Itoa(lane)),
				Logger:   p.log.With("topic", e.Input, "lane", lane),
				Outages:  p.storeOutages, Topic: e.Input, Lane: lane,
			})
		},
		Identify:        p.identify(e),
		Extract:         e.Extractor.Extract,
		Compare:         p.compareConflicts(e),
		Policy:          connect.PolicyOf(e.Topic),
		TTL:             e.TTL,
		Sliding:         laneScope(e).Sliding,
		ShutdownTimeout: p.Config().ShutdownTimeout,
		Collectors:      p.families.pipeline,
		Tracer:          p.tracer(e),
		Outages:         p.laneOutages,
		Logger:          p.log,
	})
}

// join makes a lane's member of the consumer group, once its claims can be decided. The output's
// limits are read each time: they may be why the last session failed.
func (p *running) join(
	ctx context.Context, e connect.Entry, lane int, limit *consumer.BatchLimit,
	members *consumer.Metrics,
) (pipeline.Session, *forwarder.Topics, error) {
	t := e.Topic
	if err := connect.WaitReady(ctx, p.store, e.ClaimScope()); err != nil {
		return nil, nil, err
	}
	limits, err := kafka.LimitsOf(ctx, p.clusters, t)
	if err != nil {
		return nil, nil, err
	}
	topics := &forwarder.Topics{
		Output: t.Output, Duplicates: t.DuplicatesTopic, DeadLetter: t.DeadLetterTopic,
		MaxBytes: limits.MaxBytes, Compacted: limits.Compacted,
		ByKey: t.Partitioner == config.PartitionerByKey,
	}
	connect.Compress(t, topics)
	options := p.memberOptions(t, lane)
	options.Limit = limit
	options.Store = e.Store
	options.CheckStore = func(ctx context.Context, partition int32, f fence.Fence) error {
		return p.knowledge.CheckFence(ctx, e, partition, f)
	}
	options.CheckScope = func(ctx context.Context) error { return p.checkScope(ctx, e) }
	options.Producer, options.Outputs, options.Metrics = topics.Producer(), topics.Names(), members
	if t.Delivery == config.DeliveryAtLeastOnce {
		session, err := client.JoinAtLeastOnce(ctx, options)
		return session, topics, err
	}
	session, err := client.JoinTransactional(ctx, options)
	return session, topics, err
}

// checkScope finds out whether the claims were moved away since the process began. A store that
// does not answer holds up the claims, too, and need not hold up the lane.
func (p *running) checkScope(ctx context.Context, e connect.Entry) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	err := connect.CheckMoved(ctx, p.store, e.ClaimScope())
	if err == nil || errors.Is(err, connect.ErrMoved) {
		return err
	}
	p.log.Warn("it is not known whether the claims were moved", "topic", e.Input, "error", err)
	return nil
}

const checkTimeout = 5 * time.Second

// laneScope is what lanes claim in. They alone renew: what a backfill, a redrive or a claim by hand
// finds again is no copy that comes.
func laneScope(e connect.Entry) dedup.Scope {
	scope := e.ClaimScope()
	scope.Sliding = e.Topic.Sliding()
	return scope
}

// holdsFor is how long a claim may hold, 0 without a limit.
func holdsFor(t config.Topic) time.Duration {
	if t.Sliding() {
		return 0
	}
	return t.TTL
}

// memberOf is what a lane calls itself in its group, and as a client.
func memberOf(t config.Topic, instance string, lane int) string {
	return fmt.Sprintf("%s-%s-%d", t.ConsumerGroup, instance, lane)
}

// What follows in the name of a lane's second client, where there are two clusters. The one that is
// in the group has the lane's own name, by which others know it for kdedup's.
const ofOutput, ofInput = "-output", "-input"

func (p *running) memberOptions(t config.Topic, lane int) client.Options {
	instance := p.Config().Instance
	member := memberOf(t, instance, lane)
	log := p.log.With("topic", t.Input, "lane", lane)
	o := client.Options{
		Options: consumer.Options{
			Input: t.Input, ConsumerGroup: t.ConsumerGroup, FenceTopic: t.FenceTopic,
			AcceptSkips: t.OnSkip == config.ActionAccept,
			TTL:         holdsFor(t), TransactionTimeout: t.TransactionTimeout, Logger: log,
		},
		Connection: func() []kgo.Opt { return p.connector.Options(member, p.registry, log) },
		Asks:       p.clusters.Input, OutputAsks: p.clusters.Output, TakesOver: p.takesOver,
		Member: member, Static: t.StaticMember,
		ServerSide:             t.GroupProtocol == config.ProtocolConsumer,
		TransactionalID:        client.TransactionalID(t.ConsumerGroup, instance, lane),
		EarlierTransactionalID: client.EarlierTransactionalID(t.ConsumerGroup, instance, lane),
		FromEnd:                t.Start == config.StartLatest,
		Earlier:                connect.EarlierOf(t),
		FetchBytes:             int(t.FetchBytes), UnpackedBytes: int(t.UnpackedBytes),
		SessionTimeout: t.SessionTimeout,
		Width: client.Width{Widen: func(ctx context.Context) error {
			return kafka.Widen(ctx, p.clusters, t, func(line string) { log.Info(line) })
		}},
	}
	if t.Partitioner == config.PartitionerPreserve {
		o.Width.Parallel = t.Output
	}
	switch {
	case p.forwards == p.connector:
	case t.Delivery == config.DeliveryExactlyOnce:
		o.Connection = func() []kgo.Opt {
			return p.connector.Options(member+ofInput, p.registry, log)
		}
		o.Forwarding = func() []kgo.Opt { return p.forwards.Options(member, p.registry, log) }
	default:
		o.Forwarding = func() []kgo.Opt {
			return p.forwards.Options(member+ofOutput, p.registry, log)
		}
	}
	return o
}

// batchTime is how long the forwards of a batch may take: then the broker aborts them, or gives the
// partitions to others.
func batchTime(t config.Topic) time.Duration {
	if t.Delivery == config.DeliveryAtLeastOnce {
		return client.RebalanceTimeout
	}
	return t.TransactionTimeout
}

// identify returns what a lane asks before it takes a first batch without any ID for what it is.
// Nil: it does not ask.
func (p *running) identify(e connect.Entry) func(context.Context) error {
	if !connect.NeedsIDs(e.Topic) {
		return nil
	}
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, connect.StartTimeout)
		defer cancel()
		n, err := connect.LookAtNewest(ctx, p.clusters.Input,
			p.connector.AdminOptions("kdedup-"+p.Config().Instance, p.log), e)
		if err != nil {
			return err
		}
		if n.None() {
			return n
		}
		return nil
	}
}
