package chaos_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/kdedup/kdedup/internal/pause"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

const (
	sessionTimeout = 6 * time.Second
	buckets        = 16
	// recoveryLimit is how long a healed deployment may do nothing: then it hangs.
	recoveryLimit = 5 * time.Minute
	askEvery      = 250 * time.Millisecond // each question costs the servers something
)

// storm is one deployment and what happens to it.
type storm struct {
	t        *testing.T
	world    *world
	seed     uint64
	delivery string
	store    string // where the claims are
	apart    apart
	parts    []part
	dir      string

	input, keyspace string
	workers         []*worker
	killed          [processes]atomic.Bool // in this storm, so that the metrics do not tell all
	traffic         *traffic
	admin           *kadm.Client // of the input's cluster
	outputs         *kadm.Client // of that of the output, if it is another
	start           time.Time

	keeps  []string // of a claim log, by process
	copies int

	mu   sync.Mutex
	done map[kind]int
}

// newStorm makes the topics and tables and starts the usual processes.
func newStorm(t *testing.T, w *world, o options, delivery string) *storm {
	t.Helper()
	s := &storm{
		t: t, world: w, seed: o.seed, delivery: delivery, store: o.store, apart: o.apart,
		parts: partsFor(o), dir: filepath.Join(w.dir, delivery),
		done: make(map[kind]int), start: time.Now(),
	}
	brokers := []string{w.kafka.Addr()}
	s.input = testkit.Topic(t, brokers, "chaos.orders", partitions, nil)
	if w.cassandra != nil {
		s.keyspace = testkit.Keyspace(t)
	}
	s.traffic = newTraffic(t, brokers, s.input, o.seed)
	s.admin = kadm.NewClient(s.traffic.client)
	s.askOutputs(t)
	s.keeps, s.copies = slices.Repeat([]string{keepAll}, processes), 1
	if o.share() {
		s.keeps, s.copies = keepers(o.seed, o.keep, processes)
	}
	for i := range processes {
		s.workers = append(s.workers, newWorker(t, s.dir, s.writeConfig(i, o.settings),
			fmt.Sprintf("process-%d", i)))
	}
	s.setup()
	for _, w := range s.workers[:usualProcesses] {
		w.up()
	}
	s.waitReady()
	return s
}

func (s *storm) output() string      { return s.input + ".clean" }
func (s *storm) duplicates() string  { return s.input + ".duplicates" }
func (s *storm) deadLetters() string { return s.input + ".dlq" }
func (s *storm) group() string       { return s.input + "-dedup" }

// writeConfig returns the file of one process: each reaches the broker through a proxy of its own.
func (s *storm) writeConfig(process int, settings string) string {
	s.t.Helper()
	text := fmt.Sprintf(`
shutdown_timeout: 10s
%s
%s
topics:
  - input: %s
    output: %s
    duplicates_topic: %s
    dead_letter_topic: %s
    consumer_group: %s
    delivery: %s
    message_id: {from: header, name: %s}
    buckets: %d
    lanes: 2
    batch_records: 1000
    session_timeout: %v
    %s
`, s.kafkaSection(process), s.storeSection(process), s.input, s.output(),
		s.duplicates(), s.deadLetters(), s.group(), s.delivery, idHeader, buckets, sessionTimeout,
		settings)
	file := filepath.Join(s.dir, fmt.Sprintf("kdedup-%d.yaml", process))
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return file
}

func (s *storm) storeSection(process int) string {
	shared := s.sharing(process)
	if s.world.cassandra == nil {
		return s.inKafkaSection(process, shared)
	}
	var hosts []string
	for _, line := range s.world.network.cassandra {
		hosts = append(hosts, fmt.Sprintf("%q", line.route.Listen))
	}
	layout := "rows"
	if s.store == inLog {
		layout = "log"
	}
	return fmt.Sprintf(`store:
  type: cassandra
  keepers: %s
  cassandra:
    layout: %s
    log: {path: %q}
    hosts: [%s]
    keyspace: %s
    timeout: 3s
    replication: "{'class': 'SimpleStrategy', 'replication_factor': %d}"`,
		shared, layout, s.indexes(process), strings.Join(hosts, ", "), s.keyspace, nodes)
}

// sharing is what the process keeps.
func (s *storm) sharing(process int) string {
	var route servers.Route
	if all := s.world.network.keepers; len(all) > 0 {
		route = all[process].route
	}
	return keepersSection(s.keeps[process], s.copies, route)
}

// indexes is the directory that a process alone has.
func (s *storm) indexes(process int) string {
	return filepath.Join(s.dir, fmt.Sprint("index-", process))
}

func (s *storm) setup() {
	s.t.Helper()
	var out bytes.Buffer
	cmd := exec.CommandContext(s.t.Context(), kdedup, "setup", "-c",
		filepath.Join(s.dir, "kdedup-0.yaml"))
	cmd.Env, cmd.Stdout, cmd.Stderr = testkit.Environment(), &out, &out
	if err := cmd.Run(); err != nil {
		s.t.Fatalf("kdedup setup: %v\n%s", err, out.String())
	}
}

// rage lets traffic and faults run for the given time, and returns when everything is healed.
func (s *storm) rage(length time.Duration, rate int) {
	s.start = time.Now()
	s.logf("%s, seed %d", s.delivery, s.seed)
	ctx, cancel := context.WithTimeout(s.t.Context(), length)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { s.traffic.run(ctx, rate) })
	for _, p := range s.parts {
		wg.Go(func() { s.disturb(ctx, p) })
	}
	wg.Wait()
	s.logf("the faults are over")
}

func (s *storm) count(k kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done[k]++
}

// report lists the faults that were done.
func (s *storm) report() string {
	total, kinds := 0, make([]string, 0, len(s.done))
	for _, k := range slices.Sorted(maps.Keys(s.done)) {
		kinds = append(kinds, fmt.Sprintf("%d %s", s.done[k], k))
		total += s.done[k]
	}
	return fmt.Sprintf("%d faults: %s", total, strings.Join(kinds, ", "))
}

func (s *storm) logf(format string, args ...any) {
	s.t.Helper()
	s.t.Logf("%6.1fs  "+format, append([]any{time.Since(s.start).Seconds()}, args...)...)
}

func (s *storm) waitReady() {
	s.t.Helper()
	s.eventually("ready processes", func() error {
		return each(s.workers[:usualProcesses], (*worker).ready)
	})
}

// waitDone returns when everything that was produced is committed. However slow the machine is, the
// records that are left must become fewer.
func (s *storm) waitDone() {
	s.t.Helper()
	for left := int64(math.MaxInt64); left > 0; {
		before := left
		s.eventually("progress with the input", func() (err error) {
			if left, err = s.left(); err == nil && left >= before {
				err = fmt.Errorf("%d records are left, as before", left)
			}
			return err
		})
	}
}

// left is how many records of the input are not committed.
func (s *storm) left() (left int64, err error) {
	offsets, err := s.adminOf(s.grouped()).FetchOffsets(s.t.Context(), s.group())
	if err != nil {
		return 0, err
	}
	ends, err := s.admin.ListEndOffsets(s.t.Context(), s.input)
	if err != nil {
		return 0, err
	}
	ends.Each(func(end kadm.ListedOffset) {
		at, _ := offsets.Lookup(s.grouped(), end.Partition)
		left += end.Offset - max(0, at.At)
	})
	return left, errors.Join(offsets.Error(), ends.Error())
}

// eventually waits for a condition, and shows what the processes say when it does not come.
func (s *storm) eventually(what string, condition func() error) {
	s.t.Helper()
	var last error
	s.t.Cleanup(func() {
		if last != nil {
			s.t.Logf("no %s: %v\n%s", what, last, s.logs())
		}
	})
	testkit.Eventually(s.t, recoveryLimit, what, func() bool {
		if last = condition(); last != nil {
			pause.For(s.t.Context(), askEvery)
		}
		return last == nil
	})
}

func (s *storm) logs() string {
	var b strings.Builder
	for _, w := range s.workers {
		if server := w.current(); server != nil {
			fmt.Fprintf(&b, "%s: %s\n", w.name, server.Log())
		}
	}
	return b.String()
}
