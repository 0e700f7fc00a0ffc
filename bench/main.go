// Command bench compares kdedup with other ways to remove duplicates, one after the other on the
// same servers and the same records, and writes what it finds into docs/performance.md:
//
//	bench [flags] [compare|peers|latency|apart|apart-latency|torture|backlog|processes|
//		partitions|duplicates|hot|ids]
//
// It starts the servers that KDEDUP_BENCH_KAFKA, KDEDUP_BENCH_OUTPUT, KDEDUP_BENCH_CASSANDRA and
// KDEDUP_BENCH_REDIS do not name. `make bench` builds it and everything that it runs. It reads
// /proc, so it needs Linux.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/kdedup/kdedup/lab/workload"
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	c, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(0)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(exitUsage)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	if err := c.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(exitFailed)
	}
}

// call is the command line.
type call struct {
	suite   suite
	heap    heaps
	results string // directory
	docs    string // the document; empty to leave it alone
	profile string // file for the profile of kdedup; empty for none
	words   string // for the report
}

func parse(args []string, stderr io.Writer) (*call, error) {
	c := &call{words: shown(args)}
	s := &c.suite
	s.progress, s.times.calm = stderr, 5*time.Second
	base := workload.Default()
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintf(stderr, "usage: bench [flags] [%s]\n", strings.Join(modeNames(), "|"))
		flags.PrintDefaults()
	}
	workloadFlags(flags, &base)
	only := flags.String("only", "", "contestants, with commas: "+strings.Join(allNames(), ", "))
	topic := flags.String("topic", "", "settings of kdedup's topic that differ from the "+
		"defaults, as `YAML` with semicolons: \"buckets: 64; lanes: 4\"")
	store := flags.String("cassandra", "",
		"settings under store.cassandra, as `YAML` with semicolons: \"in_flight: 256\"")
	flags.StringVar(&s.replication, "replication",
		"{'class': 'SimpleStrategy', 'replication_factor': 1}", "of the keyspaces, as in CQL")
	flags.IntVar(&s.rounds, "rounds", 3, "how often every contestant runs, in turns")
	flags.DurationVar(&s.timeout, "timeout", 30*time.Minute, "for one run")
	flags.IntVar(&s.processes, "processes", 0, "of each contestant, only runs with this many; 0 for "+
		"all of the mode; for latency, how many run, of which one is watched")
	flags.IntVar(&s.unmeasured, "unmeasured", 0, "`rounds` before those, which do not count: a "+
		"node needs minutes of load to compile its code")
	flags.IntVar(&s.rate, "rate", 1000, "records a second that are offered, for latency")
	flags.DurationVar(&s.times.warmUp, "warm-up", 5*time.Second,
		"before records count, for latency")
	flags.DurationVar(&s.times.measured, "for", time.Minute, "how long records count, for latency")
	flags.DurationVar(&s.times.idle, "idle", 30*time.Second,
		"how long an idle process is watched, for latency")
	flags.IntVar(&s.torments.kills, "kills", 20, "how often a process is killed, for torture")
	flags.DurationVar(&s.torments.during, "during", 2*time.Minute,
		"how long records come, unless they wait for a contestant, for torture")
	flags.DurationVar(&s.torments.patience, "patience", 30*time.Second,
		"how long a clean topic stands still before it is read, for torture")
	flags.StringVar(&s.programs.kdedup, "kdedup", "bin/kdedup", "the `program` that is measured")
	flags.StringVar(&s.programs.dir, "programs", besideThis(),
		"`directory` of the hand-written contestants")
	flags.StringVar(&s.dir, "dir", "", "`directory` for the servers' data (default: a temporary "+
		"one; everything is removed at the end)")
	flags.StringVar(&c.heap.kafka, "kafka-heap", "1g", "of the broker that is started")
	flags.StringVar(&c.heap.cassandra, "cassandra-heap", "2g", "of the node that is started")
	flags.StringVar(&c.results, "results", "bench/results", "`directory` for the results as JSON")
	flags.StringVar(&c.docs, "docs", "docs/performance.md",
		"`file` whose table is rewritten; empty for none")
	flags.StringVar(&c.profile, "profile", "",
		"`file` for a CPU profile of all runs of kdedup, from which its next build is optimised")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	s.settings = settings{topic: lines(*topic), cassandra: lines(*store)}
	return c, c.choose(flags.Args(), *only, base)
}

func workloadFlags(flags *flag.FlagSet, w *workload.Spec) {
	flags.IntVar(&w.Records, "records", w.Records,
		"on the input topic (backlog takes ten times as many)")
	flags.IntVar(&w.Size, "size", w.Size, "`bytes` of a value")
	flags.IntVar(&w.Partitions, "partitions", w.Partitions, "of the topics")
	flags.Float64Var(&w.Duplicates, "duplicates", w.Duplicates,
		"`share` of the records that are copies of any earlier one")
	flags.IntVar(&w.IDBytes, "id-bytes", w.IDBytes, "length of an ID; 36 makes UUIDs")
	flags.BoolVar(&w.Ordered, "ordered", w.Ordered,
		"IDs in the order of time, as UUIDv7, instead of random ones")
	flags.Uint64Var(&w.Seed, "seed", w.Seed, "of the records")
}

// choose finds out what is measured.
func (c *call) choose(words []string, only string, base workload.Spec) (err error) {
	s := &c.suite
	if len(words) == 0 {
		words = []string{modes[0].name}
	}
	if len(words) > 1 {
		return fmt.Errorf("one word at most, got %s; flags come first", strings.Join(words, " "))
	}
	if s.mode, err = modeNamed(words[0]); err != nil {
		return err
	}
	if only == "" {
		only = s.mode.only
	}
	if s.contestants, err = choose(only); err != nil {
		return err
	}
	if s.rounds < 1 || s.rate < 1 {
		return fmt.Errorf("-rounds and -rate must be at least 1, got %d and %d", s.rounds, s.rate)
	}
	s.variants = s.mode.vary(base)
	if s.mode.latency {
		for i := range s.variants {
			s.variants[i].processes = max(1, s.processes)
		}
	}
	s.variants = slices.DeleteFunc(s.variants, func(v variant) bool {
		return s.processes != 0 && v.processes != s.processes
	})
	if len(s.variants) == 0 {
		return fmt.Errorf("-processes: %s has no runs with %d", s.mode.name, s.processes)
	}
	for _, v := range s.variants {
		if err := v.spec.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// run measures, saves and writes. A measurement that failed is saved and not written.
func (c *call) run(ctx context.Context) (err error) {
	s := &c.suite
	if s.dir == "" {
		if s.dir, err = os.MkdirTemp("", "kdedup-bench-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	}
	if c.profile != "" {
		if s.profiler, err = newProfiler(); err != nil {
			return err
		}
	}
	report := &Report{Mode: s.mode.name, Date: time.Now(), Command: c.words,
		Machine: thisMachine(ctx, s.programs.kdedup)}
	measured := s.run(ctx, report, c.heap)
	file, err := report.save(c.results)
	if err := errors.Join(measured, err); err != nil {
		return err
	}
	if err := s.profiler.merge(ctx, c.profile); err != nil {
		return err
	}
	fmt.Printf("%s\n%s\nsaved as %s\n", s.mode.title, report.markdown(s.mode), file)
	if c.docs == "" {
		return nil
	}
	return report.rewrite(c.docs, s.mode)
}

// shown is the command as a reader would repeat it. The modes with peers have targets of their own,
// which build them.
func shown(args []string) string {
	target := "make bench"
	last := len(args) - 1
	if last >= 0 && (args[last] == "peers" || args[last] == "torture") {
		target, args = "make bench-"+args[last], args[:last]
	}
	if len(args) == 0 {
		return target
	}
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = arg
		if arg == "" || strings.ContainsAny(arg, " ;'\"{}") {
			words[i] = strconv.Quote(arg)
		}
	}
	return target + " BENCH='" + strings.Join(words, " ") + "'"
}

// lines splits settings at semicolons.
func lines(text string) []string {
	var all []string
	for line := range strings.SplitSeq(text, ";") {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// besideThis is where make puts the contestants.
func besideThis() string {
	path, err := os.Executable()
	if err != nil {
		return "."
	}
	return filepath.Dir(path)
}
