package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// suite is one call of the benchmark.
type suite struct {
	mode        mode
	contestants []contestant
	variants    []variant
	processes   int // only variants with this many; 0 for all
	rounds      int
	unmeasured  int           // rounds before them
	timeout     time.Duration // of one run
	rate        int           // offered, for the latency
	times       latencyTimes
	torments    torments
	programs    programs
	settings    settings
	replication string
	dir         string // for everything that is removed at the end
	profiler    *profiler
	progress    io.Writer
	hurry       bool // for tests: do not wait for a quiet machine between runs

	fleet    *fleet
	database *database
	admin    *kadm.Client
	outputs  *kadm.Client // of the second Kafka, nil without one
}

// run starts what is missing, lets every contestant run in turn, round after round, and stops what
// it started. What was measured before an error is in the report.
func (s *suite) run(ctx context.Context, report *Report, heap heaps) (err error) {
	var need needs
	for _, c := range s.contestants {
		need = need.and(c.needs)
	}
	s.say("starting servers")
	s.fleet, err = startFleet(ctx, need, s.dir, heap)
	defer func() { err = errors.Join(err, s.fleet.stop()) }()
	if err != nil {
		return err
	}
	report.Machine.Servers = s.fleet.versions
	if need.redis && s.fleet.redis == "" {
		report.Skipped = append(report.Skipped, "Redis: there is no redis-server and no "+
			"valkey-server here, and "+redisEnv+" names none")
	}
	if err := s.connect(); err != nil {
		return err
	}
	defer s.close()
	return s.allRounds(ctx, report)
}

func (s *suite) connect() (err error) {
	if s.admin, err = openAdmin(s.fleet.kafka); err != nil {
		return err
	}
	if s.fleet.output != "" {
		if s.outputs, err = openAdmin(s.fleet.output); err != nil {
			return err
		}
	}
	if s.fleet.cassandra != "" {
		s.database, err = openDatabase(s.fleet.cassandra)
	}
	return err
}

func openAdmin(brokers string) (*kadm.Client, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(brokers, ",")...),
		kgo.MetadataMinAge(50*time.Millisecond))
	if err != nil {
		return nil, err
	}
	return kadm.NewClient(client), nil
}

func (s *suite) close() {
	s.admin.Close()
	if s.outputs != nil {
		s.outputs.Close()
	}
	s.database.close()
}

func (s *suite) allRounds(ctx context.Context, report *Report) error {
	for round := -s.unmeasured; round < s.rounds; round++ {
		for _, v := range s.variants {
			for _, c := range s.contestants {
				if c.needs.redis && s.fleet.redis == "" {
					continue
				}
				if err := s.one(ctx, report, c, v, round+1); err != nil {
					return fmt.Errorf("round %d, %s: %w", round+1, c.name, err)
				}
			}
		}
	}
	return nil
}

func (s *suite) one(ctx context.Context, report *Report, c contestant, v variant, round int) error {
	if round < 1 {
		report = new(Report)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout,
		fmt.Errorf("not done within -timeout %v", s.timeout))
	defer cancel()
	if s.mode.latency {
		l := Latency{Contestant: c.name, Round: round, Offered: s.rate}
		err := l.measure(ctx, c, s.stage(c, v), v.processes, s.times)
		if err == nil {
			report.Latency = append(report.Latency, l)
			s.say("round %d: %s: p50 %.1f ms, p99 %.1f ms, idle CPU %.2f %%", round, c.name, l.P50,
				l.P99, l.IdleCPU)
		}
		return err
	}
	v.spec.Records /= max(1, c.divided)
	if c.alone && v.processes > 1 {
		if !s.mode.torture {
			return nil // its row would tell of more processes than run
		}
		v.processes = 1
	}
	if s.mode.torture {
		found, err := s.torture(ctx, c, v, round)
		if err == nil {
			report.Tortures = append(report.Tortures, found)
			s.say("round %d: %s, %d kills: %+v", round, c.name, found.Kills, found.Clean)
		}
		return err
	}
	r := Run{Contestant: c.name, Variant: v.label, Round: round, Spec: v.spec,
		Processes: v.processes}
	err := r.measure(ctx, c, s.stage(c, v))
	report.Runs = append(report.Runs, r)
	s.sayRun(r)
	if err == nil && r.Failure != "" && c.exact {
		return errors.New(r.Failure)
	}
	return err
}

func (s *suite) sayRun(r Run) {
	line := fmt.Sprintf("round %d: %s %s: %s records/s, %.1f µs of CPU per record, %.0f MiB",
		r.Round, r.Contestant, r.Variant, thousands(r.Rate), r.CPUMicros, r.PeakMiB)
	if r.Found != nil {
		line += fmt.Sprintf(", %d lost, %d doubled", r.Found.Lost, r.Found.Doubled)
	}
	if r.Failure != "" {
		line = fmt.Sprintf("round %d: %s %s failed: %s", r.Round, r.Contestant, r.Variant,
			r.Failure)
	}
	s.say("%s", line)
}

// stage has names of its own for every run.
func (s *suite) stage(c contestant, v variant) *stage {
	name := "kdedup-bench-" + strings.ToLower(rand.Text()[:8])
	st := &stage{
		fleet: s.fleet, programs: s.programs, settings: s.settings, replication: s.replication,
		admin: s.admin, outputs: s.admin, name: name, dir: filepath.Join(s.dir, name), spec: v.spec,
		profiler: s.profiler, hurry: s.hurry, apart: c.needs.output,
	}
	if c.needs.output {
		st.outputs = s.outputs
	}
	if c.needs.cassandra {
		st.database = s.database
	}
	return st
}

func (s *suite) say(format string, args ...any) {
	fmt.Fprintf(s.progress, time.Now().Format("15:04:05 ")+format+"\n", args...)
}
