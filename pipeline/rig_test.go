package pipeline_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/consumer/client"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/claimmetrics"
	"github.com/kdedup/kdedup/dedup/memory"
	"github.com/kdedup/kdedup/dedup/messageid"
	"github.com/kdedup/kdedup/forwarder"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/pipeline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const partitions = 4

// rig is a pipeline between topics of a fake Kafka, with a store in memory.
type rig struct {
	t        *testing.T
	admin    []kgo.Opt // how the test itself connects
	client   *kgo.Client
	registry *prometheus.Registry
	store    dedup.Claimer
	logs     *logbook // of all runs
	runs     int

	transactional bool
	lanes         int
	batch         int
	policy        pipeline.Policy
	rules         messageid.Rules
	retry         dedup.Retry
	topics        forwarder.Topics
	ttl           time.Duration
	tracer        pipeline.Tracer // may be nil
	connection    []kgo.Opt       // how the pipeline connects
	// changes each member's options; may be nil
	member   func(*client.Options)
	limits   func() (map[string]int, error)          // read for each session; may be nil
	join     func(pipeline.Session) pipeline.Session // wraps each session; may be nil
	identify func(context.Context) error             // may be nil
}

const (
	input, output, group  = "orders", "orders.clean", "orders-dedup"
	duplicates, deadTopic = "orders.duplicates", "orders.dlq"
	fence                 = group + ".fence"
)

// newRig makes the topics. The test and the pipeline may log in differently: change connection.
func newRig(t *testing.T, brokers []string, login ...kgo.Opt) *rig {
	t.Helper()
	connection := append([]kgo.Opt{kgo.SeedBrokers(brokers...)}, login...)
	client, err := kgo.NewClient(append(slices.Clip(connection),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	admin := kadm.NewClient(client)
	if _, err := admin.CreateTopics(
		t.Context(), partitions, 1, nil, input, output, duplicates, deadTopic, fence,
	); err != nil {
		t.Fatal(err)
	}
	return &rig{
		t: t, admin: connection, client: client, registry: prometheus.NewRegistry(),
		logs:          &logbook{},
		store:         memory.New(memory.Options{Violation: t.Errorf}),
		transactional: true, lanes: 2, batch: 100,
		retry:  dedup.Retry{First: time.Millisecond, Max: 10 * time.Millisecond},
		topics: forwarder.Topics{Output: output, Duplicates: duplicates, DeadLetter: deadTopic},
		ttl:    time.Hour, connection: connection,
	}
}

// running is a pipeline that was started.
type running struct {
	*pipeline.Pipeline
	cancel context.CancelFunc
	// wait returns what Run returned.
	wait func() error
}

func (r *running) stop() error {
	r.cancel()
	return r.wait()
}

// start runs the pipeline until it is stopped, at the latest when the test ends.
func (r *rig) start(instance string) *running {
	r.t.Helper()
	extractor, err := messageid.New(messageid.Source{From: "header", Name: "id"})
	if err == nil {
		extractor, err = extractor.With(r.rules)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.runs++
	reg := prometheus.WrapRegistererWith(prometheus.Labels{"instance": instance,
		"run": strconv.Itoa(r.runs)}, r.registry)
	claims, members := claimmetrics.NewCollectors(reg), consumer.NewCollectors(reg).For(input)
	log := slog.New(slog.NewTextHandler(io.MultiWriter(r.t.Output(), r.logs),
		&slog.HandlerOptions{Level: slog.LevelInfo})).With("instance", instance)
	scope := dedup.Scope{ConsumerGroup: group, Name: input, TTL: r.ttl, Buckets: 16}
	p := pipeline.New(pipeline.Options{
		Name: input, Lanes: r.lanes,
		Join: func(ctx context.Context, lane int) (pipeline.Session, *forwarder.Topics, error) {
			return r.session(ctx, fmt.Sprintf("%s-%s-%d", group, instance, lane), members, log)
		},
		Judge: func(lane int) pipeline.Judge {
			return dedup.New(scope, r.store, dedup.Options{
				Extractor: extractor, Retry: r.retry,
				Observer: claims.For(input, strconv.Itoa(lane)), Logger: log,
			})
		},
		Identify: r.identify, Extract: extractor.Extract, Policy: r.policy,
		ShutdownTimeout: 10 * time.Second,
		Collectors:      pipeline.NewCollectors(reg), Tracer: r.tracer, Logger: log,
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	run := &running{p, cancel, sync.OnceValue(func() error { return <-done })}
	r.t.Cleanup(func() { _ = run.stop() })
	return run
}

func (r *rig) session(
	ctx context.Context, member string, metrics *consumer.Metrics, log *slog.Logger,
) (session pipeline.Session, _ *forwarder.Topics, err error) {
	topics := r.topics
	if r.limits != nil {
		if topics.MaxBytes, err = r.limits(); err != nil {
			return nil, nil, err
		}
	}
	options := client.Options{
		Options: consumer.Options{
			Input: input, ConsumerGroup: group, FenceTopic: fence, TTL: r.ttl,
			Limit:              consumer.NewBatchLimit(r.batch, 1<<20, 15*time.Second, nil),
			TransactionTimeout: 15 * time.Second,
			Metrics:            metrics, Logger: log,
		},
		Connection: func() []kgo.Opt { return slices.Clone(r.connection) },
		Producer:   topics.Producer(), Outputs: topics.Names(),
		Width:  client.Width{Parallel: topics.Output},
		Member: member, TransactionalID: member, FetchBytes: 1 << 20, UnpackedBytes: 1 << 20,
		SessionTimeout: 10 * time.Second,
	}
	if r.member != nil {
		r.member(&options)
	}
	if r.transactional {
		session, err = client.JoinTransactional(ctx, options)
	} else {
		session, err = client.JoinAtLeastOnce(ctx, options)
	}
	if err == nil && r.join != nil {
		session = r.join(session)
	}
	return session, &topics, err
}

// message is an input record with an ID; copies have equal text and are at other places.
func message(partition int, id, text string) *kgo.Record {
	return &kgo.Record{
		Topic: input, Partition: int32(partition), Key: []byte("key-" + text), Value: []byte(text),
		Headers: []kgo.RecordHeader{{Key: "id", Value: []byte(id)}},
	}
}

// state is a message of partition 0 that takes the place of earlier ones with its key, where the
// input is compacted.
func state(key, id, text string) *kgo.Record {
	r := message(0, id, text)
	r.Key = []byte(key)
	return r
}

func (r *rig) produce(records ...*kgo.Record) {
	r.t.Helper()
	if err := r.client.ProduceSync(r.t.Context(), records...).FirstErr(); err != nil {
		r.t.Fatal(err)
	}
}

// committed is the sum of the group's offsets.
func (r *rig) committed() (sum int64) {
	offsets, err := kadm.NewClient(r.client).FetchOffsets(r.t.Context(), group)
	if err != nil {
		return -1
	}
	offsets.Each(func(o kadm.OffsetResponse) {
		if o.Topic == input {
			sum += o.At
		}
	})
	return sum
}

func (r *rig) waitCommitted(n int64) {
	r.t.Helper()
	testkit.Eventually(r.t, 30*time.Second, fmt.Sprintf("%d records committed", n), func() bool {
		return r.committed() == n
	})
}

// read returns the committed records of a topic, by partition.
func (r *rig) read(topic string) map[int32][]*kgo.Record {
	r.t.Helper()
	found := make(map[int32][]*kgo.Record)
	testkit.ReadCommitted(r.t, topic, func(record *kgo.Record) {
		found[record.Partition] = append(found[record.Partition], record)
	}, r.admin...)
	return found
}

// texts are the values on a topic, sorted, as "partition:value".
func (r *rig) texts(topic string) []string {
	r.t.Helper()
	all := []string{}
	for p, records := range r.read(topic) {
		for _, record := range records {
			all = append(all, fmt.Sprintf("%d:%s", p, record.Value))
		}
	}
	slices.Sort(all)
	return all
}

// counter sums the series of a metric that have the labels, given as name and value in turn.
func (r *rig) counter(name string, labels ...string) float64 {
	r.t.Helper()
	return testkit.ReadMetrics(r.t, r.registry).Value(name, labels...)
}

// outcomes returns kdedup_records_total without zeros.
func (r *rig) outcomes() map[string]int {
	counts := make(map[string]int)
	for _, outcome := range []string{"forwarded", "duplicate", "conflict", "replay",
		"passed_through", "dropped", "dead_lettered"} {
		counts[outcome] = int(r.counter("kdedup_records_total", "outcome", outcome))
	}
	maps.DeleteFunc(counts, func(_ string, n int) bool { return n == 0 })
	return counts
}

// same compares everything of a record that a consumer sees, but for the topic and the offset.
func same(a, b *kgo.Record) bool {
	if (a.Key == nil) != (b.Key == nil) || (a.Value == nil) != (b.Value == nil) ||
		len(a.Headers) != len(b.Headers) {
		return false
	}
	for i := range a.Headers {
		if a.Headers[i].Key != b.Headers[i].Key ||
			!bytes.Equal(a.Headers[i].Value, b.Headers[i].Value) ||
			(a.Headers[i].Value == nil) != (b.Headers[i].Value == nil) {
			return false
		}
	}
	return a.Partition == b.Partition && a.Timestamp.Equal(b.Timestamp) &&
		bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value)
}

// logbook keeps what the pipelines log.
type logbook struct{ testkit.Printed }

// with returns the lines that hold all of the words.
func (l *logbook) with(words ...string) (lines []string) {
	for line := range strings.Lines(l.String()) {
		if !slices.ContainsFunc(words, func(word string) bool {
			return !strings.Contains(line, word)
		}) {
			lines = append(lines, line)
		}
	}
	return lines
}
