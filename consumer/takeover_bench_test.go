package consumer_test

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/consumer/client"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// manyPartitions is how many one member takes over.
const manyPartitions = 100

// BenchmarkTakeOver measures the time from the join of a member until it has had a record of each
// of a hundred partitions, which another one had before. That one has left, or stands still in the
// middle of a transaction that wrote to all of them: then the other comes back under its name.
func BenchmarkTakeOver(b *testing.B) {
	servers.Need(b)
	var brokers [2][]string
	for i := range brokers {
		s, err := servers.StartKafka(b.Context(), servers.KafkaOptions{Dir: b.TempDir(),
			Heap: "384m"})
		servers.ForTest(b, s, err)
		brokers[i] = []string{s.Addr()}
		admin := kadm.NewClient(testkit.KafkaClient(b, brokers[i]))
		testkit.Eventually(b, time.Minute, "there is a coordinator of groups", func() bool {
			_, err := admin.FetchOffsets(b.Context(), "first")
			return err == nil
		})
	}
	for _, c := range []struct {
		name   string
		output []string
		killed bool
	}{
		{"one cluster, it left", brokers[0], false},
		{"two clusters, it left", brokers[1], false},
		{"one cluster, it was killed", brokers[0], true},
		{"two clusters, it was killed", brokers[1], true},
	} {
		b.Run(c.name, func(b *testing.B) {
			var all []time.Duration
			for range b.N {
				all = append(all, takeOverMany(b, brokers[0], c.output, c.killed))
			}
			slices.Sort(all)
			b.ReportMetric(all[len(all)/2].Seconds(), "s/median")
			b.ReportMetric(all[len(all)-1].Seconds(), "s/slowest")
		})
	}
}

func takeOverMany(b *testing.B, inputs, outputs []string, killed bool) time.Duration {
	b.Helper()
	input := testkit.Topic(b, inputs, "orders", manyPartitions, nil)
	fences := testkit.Topic(b, outputs, "fence", manyPartitions, nil)
	clean := testkit.Topic(b, outputs, "clean", manyPartitions, nil)
	options := memberOptions(b, inputs, input, fences, input+"-group-a-0")
	options.Limit = consumer.NewBatchLimit(10*manyPartitions, 1<<20, 15*time.Second, nil)
	options.Static, options.SessionTimeout = killed, 30*time.Second
	options.Logger = slog.New(slog.DiscardHandler)
	if !slices.Equal(inputs, outputs) {
		options.Forwarding = func() []kgo.Opt { return []kgo.Opt{kgo.SeedBrokers(outputs...)} }
	}
	outsider := testkit.KafkaClient(b, inputs)
	join := func() *consumer.Transactional {
		session, err := client.JoinTransactional(b.Context(), options)
		if err != nil {
			b.Fatal(err)
		}
		return session
	}

	m := &many{b: b, outsider: outsider, input: input, clean: clean, fences: fences}
	m.produceOne()
	before := join()
	m.haveAll(before)
	m.produceOne()
	if killed {
		m.leaveOpen(before)
	} else {
		before.Close()
	}
	begun := time.Now()
	after := join()
	m.haveAll(after)
	took := time.Since(begun)
	after.Close()
	if killed {
		before.Close()
	}
	return took
}

type many struct {
	b                    *testing.B
	outsider             *kgo.Client
	input, clean, fences string
}

// produceOne writes a record into each partition.
func (m *many) produceOne() {
	m.b.Helper()
	var records []*kgo.Record
	for p := range int32(manyPartitions) {
		records = append(records, &kgo.Record{Topic: m.input, Partition: p, Value: []byte("v")})
	}
	if err := m.outsider.ProduceSync(m.b.Context(), records...).FirstErr(); err != nil {
		m.b.Fatal(err)
	}
}

// haveAll handles batches until there was one record of each partition.
func (m *many) haveAll(session *consumer.Transactional) {
	m.b.Helper()
	had := make(map[int32]int)
	for len(had) < manyPartitions {
		batch := m.write(session)
		if err := session.Commit(m.b.Context(), batch); err != nil {
			m.b.Fatal(err)
		}
		for _, r := range batch.Records {
			had[r.Partition]++
		}
	}
	for p, n := range had {
		if n != 1 {
			m.b.Fatalf("%d records of partition %d", n, p)
		}
	}
}

// leaveOpen leaves a transaction open that has written to all partitions that it got at once.
func (m *many) leaveOpen(session *consumer.Transactional) { m.write(session) }

func (m *many) write(session *consumer.Transactional) *consumer.Batch {
	m.b.Helper()
	batch, err := session.Poll(m.b.Context())
	if err != nil {
		m.b.Fatal(err)
	}
	if err := session.Begin(m.b.Context(), batch); err != nil {
		m.b.Fatal(err)
	}
	for _, r := range batch.Records {
		session.Produce(m.b.Context(), &kgo.Record{Topic: m.clean, Partition: r.Partition,
			Value: r.Value}, func(_ *kgo.Record, err error) {
			if err != nil {
				m.b.Error(err)
			}
		})
	}
	if err := session.Flush(m.b.Context()); err != nil {
		m.b.Fatal(err)
	}
	return batch
}
