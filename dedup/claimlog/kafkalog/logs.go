// Package kafkalog is the claim log in Kafka: the shards of a group are the partitions of a topic,
// and a block is a record. Beside that topic is another one with one partition, the registry, for
// what must outlive the claims. [Logs.Topics] says how both must be made.
//
// A block is written with acks=all, outside of any transaction: a claim must be seen at once, and
// stands whatever becomes of the batch. Readers see it once all replicas in sync have it. Its time
// is the broker's (LogAppendTime). What becomes of answered claims when brokers fail is therefore
// what becomes of records written with acks=all: see min.insync.replicas.
//
// Blocks that are appended while others are on their way share a request: the client gathers them.
package kafkalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup/claimlog"
)

// Options say where the brokers are.
type Options struct {
	Connection []kgo.Opt // at least kgo.SeedBrokers
	// Topic is the name of the topic with a group's claims, in which {group} stands for the group;
	// empty: DefaultTopic. The registry's name has ".scopes" behind it.
	Topic  string
	Logger *slog.Logger // nil: nothing is logged
}

// DefaultTopic is the name of the topic with a group's claims where nothing else is wanted.
const DefaultTopic = GroupMark + ".claims"

// GroupMark stands for the group in Options.Topic.
const GroupMark = "{group}"

// Logs leads to the logs of all groups of a Kafka cluster.
type Logs struct{ o Options }

var _ claimlog.Opener = (*Logs)(nil)

// New connects to nothing yet.
func New(o Options) *Logs {
	if o.Topic == "" {
		o.Topic = DefaultTopic
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Logs{o: o}
}

// Close implements claimlog.Opener.
func (*Logs) Close() error { return nil }

const (
	registrySuffix   = ".scopes"
	longestTopicName = 249
)

var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]+$`)

// topic is the name of the topic with the claims of a group. Groups whose names no topic can have
// get one with a part of their hash.
func (l *Logs) topic(group string) string {
	name := strings.ReplaceAll(l.o.Topic, GroupMark, group)
	if topicName.MatchString(name) && len(name)+len(registrySuffix) <= longestTopicName {
		return name
	}
	sum := sha256.Sum256([]byte(group))
	return strings.ReplaceAll(l.o.Topic, GroupMark, "kdedup-"+hex.EncodeToString(sum[:16]))
}

// ClaimsTopic is the name of the topic with the claims of a group.
func (l *Logs) ClaimsTopic(group string) string { return l.topic(group) }

func (l *Logs) registryTopic(group string) string { return l.topic(group) + registrySuffix }

const (
	deliveryTimeout = 10 * time.Second // of a block; its claims are undecided then
	requestTimeout  = 5 * time.Second
	// of an idle fetch, not of a block: a broker answers once there is one
	fetchWait = time.Second

	fetchBytes          = 8 << 20
	fetchPartitionBytes = 1 << 20
	concurrentFetches   = 4
)

// settingsEvery is how often it is looked whether the topic still is as a log must be; tests look
// more often.
var settingsEvery = 5 * time.Second

// Open implements claimlog.Opener.
func (l *Logs) Open(ctx context.Context, group string) (claimlog.Log, error) {
	topic := l.topic(group)
	client, err := l.client(
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()), // IDs and fingerprints are random bytes
		kgo.ProducerLinger(0),
		kgo.RecordDeliveryTimeout(deliveryTimeout), kgo.ProduceRequestTimeout(requestTimeout),
		kgo.AllowIdempotentProduceCancellation(), // the same claims twice in the log do no harm
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchMaxWait(fetchWait), kgo.FetchMaxBytes(fetchBytes),
		kgo.FetchMaxPartitionBytes(fetchPartitionBytes),
		kgo.MaxConcurrentFetches(concurrentFetches),
		kgo.KeepControlRecords(), // they have places
	)
	if err != nil {
		return nil, err
	}
	log := &topicLog{topic: topic, client: client, admin: kadm.NewClient(client), say: l.o.Logger,
		failed: make(chan error, 1)}
	if err := log.describe(ctx); err != nil {
		client.Close()
		return nil, fmt.Errorf("open claim log: topic %s: %w", topic, err)
	}
	return log, nil
}

func (l *Logs) client(options ...kgo.Opt) (*kgo.Client, error) {
	connection := l.o.Connection
	client, err := kgo.NewClient(append(connection[:len(connection):len(connection)],
		options...)...)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	return client, nil
}

const setupRemedy = "run: kdedup setup -c FILE"

func topicDetail(ctx context.Context, admin *kadm.Client, topic string) (kadm.TopicDetail, error) {
	details, err := admin.ListTopics(ctx, topic)
	if err != nil {
		return kadm.TopicDetail{}, err
	}
	detail := details[topic]
	if errors.Is(detail.Err, kerr.UnknownTopicOrPartition) || detail.Err == nil &&
		len(detail.Partitions) == 0 {
		return detail, fmt.Errorf("it does not exist; %s: %w", setupRemedy,
			kerr.UnknownTopicOrPartition)
	}
	return detail, detail.Err
}

func settings(ctx context.Context, admin *kadm.Client, topic string) (map[string]string, error) {
	described, err := admin.DescribeTopicConfigs(ctx, topic)
	if err == nil {
		_, err = described.On(topic, nil)
	}
	values := make(map[string]string)
	for _, d := range described {
		err = errors.Join(err, d.Err)
		for _, c := range d.Configs {
			values[c.Key] = c.MaybeValue()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read its settings, without which it is not known how long it keeps "+
			"claims: %w", err)
	}
	return values, nil
}
