package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/kdedup/kdedup/lab/workload"
)

// Run is what one run of a contestant gave.
type Run struct {
	Contestant string        `json:"contestant"`
	Variant    string        `json:"variant,omitempty"`
	Round      int           `json:"round"`
	Spec       workload.Spec `json:"spec"`
	Processes  int           `json:"processes"`

	// From the start of the processes to the first partitions that the group gave to one of them.
	StartSeconds float64 `json:"start_seconds"`
	// From then to when the offsets of all records were committed.
	Seconds float64 `json:"seconds"`
	Rate    float64 `json:"records_per_second"`
	// Of all processes, from their start to their end.
	CPUMicros float64 `json:"cpu_us_per_record"`
	// Of the broker and of the contestant's store while records were drained; 0 for a server that
	// was not started here.
	KafkaMicros float64         `json:"kafka_cpu_us_per_record,omitempty"`
	StoreMicros float64         `json:"store_cpu_us_per_record,omitempty"`
	PeakMiB     float64         `json:"peak_rss_mib"` // of all processes, each at its peak
	Memory      []Sample        `json:"memory,omitempty"`
	Found       *workload.Found `json:"found,omitempty"`
	Failure     string          `json:"failure,omitempty"`
}

// Sample is the resident memory of all processes in the middle of a run.
type Sample struct {
	Seconds   float64 `json:"seconds"`
	Committed int64   `json:"committed"`
	MiB       float64 `json:"mib"`
}

const (
	// watchEvery is how often the group's offsets are asked for: the error of the time of a run. It
	// costs the broker less than a hundredth of a core.
	watchEvery  = 20 * time.Millisecond
	sampleEvery = time.Second
)

// measure does the run. A contestant that fails is a result; an error is a failure of the
// benchmark.
func (r *Run) measure(ctx context.Context, c contestant, s *stage) (err error) {
	defer func() { err = errors.Join(err, s.clear(ctx)) }()
	if err := s.prepare(ctx, c, nil); err != nil {
		return err
	}
	if c.ceiling {
		return r.measureCeiling(ctx, c, s)
	}
	messages, err := s.spec.Fill(ctx, s.connection(), s.input(), nil)
	if err != nil {
		return err
	}
	if err := s.settle(ctx); err != nil {
		return err
	}
	if err := r.drain(ctx, c, s, messages); err != nil {
		r.Failure = err.Error()
		return ctx.Err()
	}
	found, err := s.spec.Check(ctx, s.outputConnection(), s.output(), messages)
	if err != nil {
		return err
	}
	r.Found = &found
	if c.exact {
		return found.Err()
	}
	return nil
}

// settle gives every run the same start: what was just produced is on the disk, and Cassandra is
// idle.
func (s *stage) settle(ctx context.Context) error {
	if s.hurry {
		return nil
	}
	syscall.Sync()
	if s.database == nil {
		return nil
	}
	return s.database.settle(ctx)
}

// drain runs the contestant until the offsets of all records are committed, a peer until all
// messages are on the clean topic.
func (r *Run) drain(ctx context.Context, c contestant, s *stage, messages int) (err error) {
	handled, stopCounting, err := r.handled(ctx, c, s, messages)
	if err != nil {
		return err
	}
	defer stopCounting()
	all, err := startAll(ctx, c, s, r.Processes)
	if err != nil {
		return err
	}
	defer func() {
		cpu, stopErr := stopAll(all)
		r.CPUMicros = r.perRecord(cpu)
		err = cmp.Or(err, stopErr) // that it does not stop well follows from that it failed
	}()
	assigned, err := firstAssigned(ctx, all)
	if err != nil {
		return err
	}
	r.StartSeconds = assigned.Sub(all[0].started).Seconds()
	waitProfile := s.profiler.begin(ctx, c, s.profile())
	kafka, store := s.brokersCPU(), s.fleet.cpu(c.needs.server())
	if err := r.watch(ctx, handled, all, assigned); err != nil {
		return errors.Join(err, waitProfile())
	}
	r.Seconds = time.Since(assigned).Seconds()
	r.Rate = float64(r.Spec.Records) / r.Seconds
	r.KafkaMicros = r.perRecord(s.brokersCPU() - kafka)
	r.StoreMicros = r.perRecord(s.fleet.cpu(c.needs.server()) - store)
	memory, err := together(all)
	r.PeakMiB = float64(memory.peak) / (1 << 20)
	return errors.Join(err, waitProfile())
}

// brokersCPU is what the brokers that work for the run took so far.
func (s *stage) brokersCPU() time.Duration {
	took := s.fleet.cpu(kafkaServer)
	if s.apart {
		took += s.fleet.cpu(outputServer)
	}
	return took
}

// perRecord is a time as microseconds for each record.
func (r *Run) perRecord(took time.Duration) float64 {
	return float64(took.Microseconds()) / float64(r.Spec.Records)
}

// progress tells how many records a contestant has handled, and whether that is all. An error says
// that this will never be known.
type progress func() (all bool, records int64, err error)

func (r *Run) handled(
	ctx context.Context, c contestant, s *stage, messages int,
) (handled progress, stop func(), err error) {
	if !c.peer {
		return func() (bool, int64, error) {
			n, err := s.committed(ctx) // the next answer may be better
			return err == nil && n >= int64(r.Spec.Records), n, nil
		}, func() {}, nil
	}
	clean, err := openReader(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	return func() (bool, int64, error) {
		n := clean.count.Load()
		return n >= int64(messages), n, clean.failure()
	}, clean.close, nil
}

func startAll(ctx context.Context, c contestant, s *stage, n int) ([]*process, error) {
	var all []*process
	for i := range n {
		instance := fmt.Sprintf("bench-%d", i)
		p, err := c.start(ctx, s, instance)
		if err != nil {
			_, stopErr := stopAll(all)
			return nil, errors.Join(err, stopErr)
		}
		all = append(all, p)
	}
	return all, nil
}

func stopAll(all []*process) (cpu time.Duration, err error) {
	var errs []error
	for _, p := range all {
		took, err := p.stop()
		cpu += took
		errs = append(errs, err)
	}
	return cpu, errors.Join(errs...)
}

func firstAssigned(ctx context.Context, all []*process) (time.Time, error) {
	ctx, cancel := context.WithCancel(ctx)
	type answer struct {
		at  time.Time
		err error
	}
	answers := make(chan answer, len(all))
	for _, p := range all {
		go func() {
			at, err := p.waitAssigned(ctx)
			answers <- answer{at, err}
		}()
	}
	first := <-answers
	cancel()
	for range len(all) - 1 {
		<-answers
	}
	return first.at, first.err
}

// watch returns when all is handled.
func (r *Run) watch(ctx context.Context, handled progress, all []*process, since time.Time) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	sampled := since
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", r.Contestant, context.Cause(ctx))
		case <-tick.C:
		}
		done, records, err := handled()
		if done || err != nil {
			return err
		}
		for _, p := range all {
			if p.over() {
				return p.failure()
			}
		}
		if time.Since(sampled) >= sampleEvery {
			sampled = time.Now()
			r.sample(all, time.Since(since), records)
		}
	}
}

// sample leaves out what cannot be read: the process is just ending, which watch notices.
func (r *Run) sample(all []*process, at time.Duration, committed int64) {
	memory, err := together(all)
	if err == nil {
		r.Memory = append(r.Memory, Sample{at.Seconds(), committed,
			float64(memory.now) / (1 << 20)})
	}
}

// together adds up; pages that processes share count in each.
func together(all []*process) (m memory, err error) {
	for _, p := range all {
		one, err := memoryOf(p.cmd.Process.Pid)
		if err != nil {
			return m, err
		}
		m.now, m.peak = m.now+one.now, m.peak+one.peak
	}
	return m, nil
}

// committed adds up the group's offsets. The input has no transactions, so they count its records.
// Of two clusters the other one has the group, and the offsets stand beside the fence topic.
func (s *stage) committed(ctx context.Context) (n int64, err error) {
	topic := s.input()
	if s.apart {
		topic = s.group() + ".fence"
	}
	offsets, err := s.outputs.FetchOffsets(ctx, s.group())
	if err != nil {
		return 0, err
	}
	offsets.Each(func(o kadm.OffsetResponse) {
		if o.Topic == topic && o.At > 0 {
			n += o.At
		}
	})
	return n, nil
}

// measureCeiling takes the numbers that the store's own measurement prints.
func (r *Run) measureCeiling(ctx context.Context, c contestant, s *stage) error {
	if err := s.settle(ctx); err != nil {
		return err
	}
	printed, err := output(ctx, c.command(s, "bench-0"))
	if err != nil {
		r.Failure = err.Error()
		return ctx.Err()
	}
	var ceiling struct {
		Rate float64 `json:"claims/s"`
		CPU  float64 `json:"cpu_us/claim"`
		Peak float64 `json:"peak_rss_MiB"`
	}
	if err := json.NewDecoder(bytes.NewReader(printed)).Decode(&ceiling); err != nil {
		return fmt.Errorf("read what kdedup bench claims printed: %w\n%s", err, printed)
	}
	if ceiling.Rate == 0 {
		return fmt.Errorf("kdedup bench claims printed no claims/s\n%s", printed)
	}
	r.Rate, r.CPUMicros, r.PeakMiB = ceiling.Rate, ceiling.CPU, ceiling.Peak
	r.Seconds = float64(r.Spec.Records) / ceiling.Rate
	return nil
}
