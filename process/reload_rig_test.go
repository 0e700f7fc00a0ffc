package process

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/pipeline"
	"github.com/kdedup/kdedup/process/server"
)

// reloading is a process whose file the test changes.
type reloading struct {
	t       *testing.T
	cluster *kfake.Cluster
	admin   *kadm.Client
	path    string
	head    string // the file but for its topics
	log     testkit.Printed
	reads   atomic.Int64       // of the file
	sent    map[string]float64 // messages, by input
	hangup  chan os.Signal
	process *Process
	stop    context.CancelFunc
	ended   chan error
}

const (
	neverLook = time.Hour // the file is read when the test asks for it
	lookOften = 20 * time.Millisecond
)

// orders, payments and refunds are pipelines, with more settings.
func orders(more ...string) string   { return pipelineOf("orders", more...) }
func payments(more ...string) string { return pipelineOf("payments", more...) }
func refunds(more ...string) string  { return pipelineOf("refunds", more...) }

func pipelineOf(name string, more ...string) string {
	lines := append([]string{
		"input: " + name, "output: " + name + ".clean", "consumer_group: " + name + "-dedup",
		"message_id: {from: key}",
		"on_missing_id: drop", "session_timeout: 6s",
	}, more...)
	if !slices.ContainsFunc(more, func(line string) bool {
		return strings.HasPrefix(line, "lanes:")
	}) {
		lines = append(lines, "lanes: 2")
	}
	return "  - " + strings.Join(lines, "\n    ") + "\n"
}

// head is a file but for its topics.
func head(t *testing.T, broker string) string {
	return fmt.Sprintf("instance: test\nkafka: {brokers: [%q]}\nstore: {type: embedded, embedded: {path: "+
		"%q}}\nserver: {listen: \"127.0.0.1:0\"}\n",
		broker, filepath.Join(t.TempDir(), "data"))
}

// startReloading runs orders and payments until the test ends. The topics of refunds exist too.
func startReloading(t *testing.T, every time.Duration) *reloading {
	t.Helper()
	r := newReloading(t)
	r.write(orders(), payments())
	r.run(every)
	r.waitReady()
	return r
}

// newReloading makes the topics.
func newReloading(t *testing.T) *reloading {
	t.Helper()
	cluster, brokers := testkit.FakeKafka(t, kfake.SeedTopics(4, "orders", "payments", "refunds"))
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	r := &reloading{
		t: t, cluster: cluster, admin: kadm.NewClient(client),
		path: filepath.Join(t.TempDir(), "kdedup.yaml"), head: head(t, brokers[0]),
		hangup: make(chan os.Signal, 1), ended: make(chan error, 1), sent: make(map[string]float64),
	}
	r.write(orders(), payments(), refunds())
	c, err := r.read()
	if err == nil {
		err = connect.Setup(t.Context(), c, slog.New(slog.DiscardHandler), false, func(string) {})
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *reloading) read() (config.Config, error) {
	r.reads.Add(1)
	return config.Load(r.path, nil)
}

func (r *reloading) run(every time.Duration) {
	r.t.Helper()
	c, err := r.read()
	if err != nil {
		r.t.Fatal(err)
	}
	log, level := NewLogger(c.Log, &r.log, nil)
	if r.process, err = Wire(r.t.Context(), c, log, level); err != nil {
		r.t.Fatal(err)
	}
	r.process.lookEvery = lookOften
	var ctx context.Context
	ctx, r.stop = context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		r.ended <- r.process.Run(ctx, NewConfigFile(r.read, r.hangup, every, c))
	}()
	r.t.Cleanup(func() {
		r.stop()
		<-over
		r.process.Close()
		if r.t.Failed() {
			r.t.Logf("log:\n%s", r.log.String())
		}
	})
}

// write puts a file in the place of the one before, as an editor does.
func (r *reloading) write(topics ...string) {
	r.writeText(r.head + "topics:\n" + strings.Join(topics, ""))
}

func (r *reloading) writeText(text string) {
	r.t.Helper()
	if err := os.WriteFile(r.path+".new", []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Rename(r.path+".new", r.path); err != nil {
		r.t.Fatal(err)
	}
}

// reload sends the signal and waits for its effect. It returns the line of the log that tells it.
func (r *reloading) reload() (line string) {
	r.t.Helper()
	before := len(r.outcomes())
	r.hangup <- syscall.SIGHUP
	return r.waitOutcome(before)
}

// waitOutcome returns the first outcome of a reload after those that there were before.
func (r *reloading) waitOutcome(before int) (line string) {
	r.t.Helper()
	testkit.Eventually(r.t, time.Minute, "the outcome of the reload", func() bool {
		return len(r.outcomes()) > before
	})
	return r.outcomes()[before]
}

// outcomes are the lines of the log about reloads.
func (r *reloading) outcomes() (lines []string) {
	for line := range strings.Lines(r.log.String()) {
		if strings.Contains(line, "configuration reloaded") ||
			strings.Contains(line, "configuration refused") {
			lines = append(lines, line)
		}
	}
	return lines
}

func (r *reloading) waitReady() {
	r.t.Helper()
	testkit.Eventually(r.t, time.Minute, "readiness", func() bool {
		return !slices.ContainsFunc(r.process.checks(), func(c server.Check) bool {
			return c.Func(r.t.Context()) != nil
		})
	})
}

// value is that of a metric.
func (r *reloading) value(name string, labels ...string) float64 {
	return testkit.ReadMetrics(r.t, r.process.registry).Value(name, labels...)
}

// sight is what must stay as it is in a pipeline that is not touched.
type sight struct {
	Members     []string // their IDs
	Assignments float64  // so far
	Lanes       []*pipeline.Pipeline
}

// look is at the pipeline of an input.
func (r *reloading) look(input string) sight {
	r.t.Helper()
	groups, err := r.admin.DescribeGroups(r.t.Context(), input+"-dedup")
	if err != nil {
		r.t.Fatal(err)
	}
	s := sight{Assignments: r.value("kdedup_rebalances_total", "topic", input)}
	for _, m := range groups[input+"-dedup"].Members {
		s.Members = append(s.Members, m.MemberID)
	}
	if run := r.process.active.Load().find(input + "-dedup"); run != nil {
		s.Lanes = append(s.Lanes, run.Pipeline)
	}
	slices.Sort(s.Members)
	return s
}

// settled looks when the pipeline has its lanes, each of them has its partitions, and they commit.
func (r *reloading) settled(input string, lanes int) (s sight) {
	r.t.Helper()
	r.waitReady()
	testkit.Eventually(r.t, time.Minute, "lanes with equal shares of "+input, func() bool {
		states := r.process.active.Load().find(input + "-dedup").Lanes()
		return len(states) == lanes &&
			!slices.ContainsFunc(states, func(l pipeline.LaneState) bool {
				return len(l.Assigned) != 4/lanes
			})
	})
	r.drain(input, 10)
	return r.look(input)
}

// untouched compares the pipeline with what it was.
func (r *reloading) untouched(input string, before sight) {
	r.t.Helper()
	r.drain(input, 10)
	samePointers := cmp.Comparer(func(a, b *pipeline.Pipeline) bool { return a == b })
	if diff := cmp.Diff(before, r.look(input), samePointers); diff != "" {
		r.t.Errorf("the pipeline of %s was touched (-before +after):\n%s", input, diff)
	}
}

// drain produces new messages and waits until they are forwarded.
func (r *reloading) drain(input string, n int) {
	r.t.Helper()
	r.produce(input, n)
	testkit.Eventually(r.t, time.Minute, "new records of "+input+" on the clean topic",
		func() bool { return r.forwarded(input) == r.sent[input] })
}

func (r *reloading) forwarded(input string) float64 {
	return r.value("kdedup_records_total", "topic", input, "outcome", "forwarded")
}

func (r *reloading) produce(input string, n int) {
	r.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(r.cluster.ListenAddrs()...))
	if err != nil {
		r.t.Fatal(err)
	}
	defer client.Close()
	r.sent[input] += float64(n)
	for range n {
		record := &kgo.Record{Topic: input, Key: []byte(rand.Text()), Value: []byte("v")}
		if err := client.ProduceSync(r.t.Context(), record).FirstErr(); err != nil {
			r.t.Fatal(err)
		}
	}
}
