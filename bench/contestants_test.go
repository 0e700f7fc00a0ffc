package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
	"github.com/kdedup/kdedup/lab/workload"
)

// built is where the programs are that the tests run.
var built programs

func TestMain(m *testing.M) {
	testkit.EachRun()
	directory, err := os.MkdirTemp("", "kdedup-bench-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	built = programs{kdedup: filepath.Join(directory, "kdedup"), dir: directory}
	build := exec.Command("go", "build", "-o", directory+"/", "../cmd/kdedup", "./contestants/...")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the contestants: %v\n%s", err, out)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(directory)
		os.Exit(code)
	}))
}

// testSuite is on a fake Kafka and what the contestant needs beside it.
func testSuite(t *testing.T, c contestant) *suite {
	t.Helper()
	for _, name := range []string{kafkaEnv, outputEnv, cassandraEnv, redisEnv} {
		t.Setenv(name, "")
	}
	_, brokers := testkit.FakeKafka(t)
	s := &suite{
		contestants: []contestant{c}, programs: built, dir: t.TempDir(), progress: t.Output(),
		hurry:   true,
		timeout: 3 * time.Minute, rounds: 1, rate: 200,
		times: latencyTimes{warmUp: 500 * time.Millisecond, measured: time.Second,
			calm: 100 * time.Millisecond, idle: 500 * time.Millisecond},
		replication: "{'class': 'SimpleStrategy', 'replication_factor': 1}",
		fleet:       &fleet{kafka: strings.Join(brokers, ",")},
	}
	if c.needs.output {
		_, output := testkit.FakeKafka(t)
		s.fleet.output = strings.Join(output, ",")
	}
	if c.needs.cassandra {
		s.fleet.cassandra = testkit.Cassandra(t)
	}
	if c.needs.redis {
		servers.NeedRedis(t)
		if err := s.fleet.startRedis(t.Context(), t.TempDir()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.fleet.stop(); err != nil {
				t.Error(err)
			}
		})
	}
	if err := s.connect(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

func TestEveryContestantDrainsItsTopic(t *testing.T) {
	some := slices.DeleteFunc(slices.Clone(contestants), func(c contestant) bool {
		return !slices.Contains([]string{"copy-transactions", kdedupEmbedded, embeddedApart},
			c.name)
	})
	for _, c := range testkit.Share(t, contestants, some) {
		t.Run(c.name, func(t *testing.T) {
			s := testSuite(t, c)
			base := workload.Default()
			base.Records = 5000
			s.variants = asItIs(base)
			var report Report
			if err := s.allRounds(t.Context(), &report); err != nil {
				t.Fatal(err)
			}
			checkRun(t, c, report.Runs[0])
			checkNothingIsLeft(t, s)
		})
	}
}

func TestProfilesOfRunsAreMerged(t *testing.T) {
	c := contestants[slices.IndexFunc(contestants, func(c contestant) bool {
		return c.name == kdedupEmbedded
	})]
	s := testSuite(t, c)
	var err error
	if s.profiler, err = newProfiler(); err != nil {
		t.Fatal(err)
	}
	s.profiler.during = time.Second
	s.rounds = 2
	base := workload.Default()
	// a profile has a hundred samples a second: a few thousand records may leave none of a lane
	base.Records = 100_000
	s.variants = asItIs(base)
	if err := s.allRounds(t.Context(), new(Report)); err != nil {
		t.Fatal(err)
	}
	merged := filepath.Join(t.TempDir(), "default.pgo")
	if err := s.profiler.merge(t.Context(), merged); err != nil {
		t.Fatal(err)
	}
	top, err := exec.CommandContext(t.Context(), "go", "tool", "pprof", "-top", "-cum",
		"-nodecount=1000", merged).CombinedOutput()
	if err != nil || !strings.Contains(string(top), "pipeline.(*lane).turn") {
		t.Errorf("%v\n%s", err, top)
	}
	if !strings.Contains(string(top), "Duration: 2") {
		t.Errorf("not of two runs of a second:\n%s", top)
	}
}

func checkRun(t *testing.T, c contestant, r Run) {
	t.Helper()
	if r.Failure != "" || r.Rate <= 0 || r.CPUMicros <= 0 || r.PeakMiB <= 0 {
		t.Fatalf("not measured: %+v", r)
	}
	if c.ceiling {
		return
	}
	// The copies of the copiers are what there is to remove. Without a crash nobody loses anything,
	// but lwt where an insert that the node applied timed out.
	removes := !strings.HasPrefix(c.name, "copy")
	if f := r.Found; (f.Lost > 0 && c.name != "lwt") || f.Changed > 0 ||
		(f.Doubled > 0) == removes {
		t.Errorf("found %+v", *f)
	}
	if r.Found.Misplaced > 0 && c.name != "redis" {
		t.Errorf("%d out of order", r.Found.Misplaced)
	}
}

func checkNothingIsLeft(t *testing.T, s *suite) {
	t.Helper()
	for _, admin := range []*kadm.Client{s.admin, s.outputs} {
		if admin == nil {
			continue
		}
		// the client remembers them for a moment
		testkit.Eventually(t, 30*time.Second, "no topics", func() bool {
			topics, err := admin.ListTopics(t.Context())
			return err == nil && len(topics) == 0
		})
	}
	if left, err := filepath.Glob(filepath.Join(s.dir, "*")); err != nil || len(left) > 0 {
		t.Errorf("files %v are left, %v", left, err)
	}
}

func TestSeveralProcessesShareATopic(t *testing.T) {
	c := named(t, "copy")
	s := testSuite(t, c)
	base := workload.Default()
	base.Records = 5000
	s.variants = []variant{{"2 processes", base, 2}}
	var report Report
	if err := s.allRounds(t.Context(), &report); err != nil {
		t.Fatal(err)
	}
	checkRun(t, c, report.Runs[0])
}

func TestTheLatencyOfRecordsAndTheCostOfAnIdleProcess(t *testing.T) {
	s := testSuite(t, named(t, embeddedApart))
	s.mode = mode{latency: true}
	s.unmeasured = 1
	s.variants = asItIs(workload.Default())
	var report Report
	if err := s.allRounds(t.Context(), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Latency) != 1 {
		t.Fatalf("%d rounds are reported, one of two was to be measured", len(report.Latency))
	}
	l := report.Latency[0]
	// Of 200 records that count about one in ten is a copy.
	if l.Records < 120 || l.Records > 240 || l.P50 <= 0 || l.P99 < l.P50 || l.Max < l.P99 ||
		l.IdleMiB <= 0 || l.IdleCPU > 100 {
		t.Errorf("got %+v", l)
	}
	checkNothingIsLeft(t, s)
}

func named(t *testing.T, name string) contestant {
	t.Helper()
	found, err := choose(name)
	if err != nil {
		t.Fatal(err)
	}
	return found[0]
}

// A contestant that falls over is a result, with the end of its log, and the others still run.
func TestAContestantThatFailsIsReported(t *testing.T) {
	c := contestant{name: "broken", command: func(*stage, string) []string {
		return []string{"sh", "-c", "echo out of luck >&2; exit 3"}
	}}
	s := testSuite(t, c)
	s.variants = asItIs(workload.Spec{Records: 10, Size: 20, Partitions: 1, IDBytes: 36})
	var report Report
	if err := s.allRounds(t.Context(), &report); err != nil {
		t.Fatal(err)
	}
	if got := report.Runs[0].Failure; !strings.Contains(got, "out of luck") ||
		!strings.Contains(got, "exit status 3") {
		t.Errorf("got %q", got)
	}
	c.exact = true
	s.contestants = []contestant{c}
	if err := s.allRounds(t.Context(), &report); err == nil {
		t.Error("kdedup may fail unnoticed")
	}
}

// One that copies everything and claims to be exact must be found out.
func TestAnExactContestantThatDoublesFailsTheMeasurement(t *testing.T) {
	c := named(t, "copy")
	c.exact = true
	s := testSuite(t, c)
	base := workload.Default()
	base.Records = 2000
	s.variants = asItIs(base)
	if err := s.allRounds(t.Context(), new(Report)); err == nil ||
		!strings.Contains(err.Error(), "doubled") {
		t.Errorf("got %v", err)
	}
}

// What wait4 calls the peak of a child is at least that of the process that started it.
func TestThePeakOfAProcessIsItsOwn(t *testing.T) {
	ballast := make([]byte, 256<<20)
	for i := 0; i < len(ballast); i += 4096 {
		ballast[i] = 1
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p, err := startProcess(ctx, "sleeper", assignedLine, "sh", "-c",
		"echo '"+assignedLine+"' >&2; exec sleep 60")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		<-p.exited
	}()
	if _, err := p.waitAssigned(ctx); err != nil {
		t.Fatal(err)
	}
	m, err := memoryOf(p.cmd.Process.Pid)
	if err != nil || m.peak > 64<<20 || m.now <= 0 {
		t.Errorf("got %+v, %v", m, err)
	}
	if ballast[0] != 1 {
		t.Error("the ballast was dropped")
	}
}
