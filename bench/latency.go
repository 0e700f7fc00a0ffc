package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/lab/workload"
)

// Latency is how long records took through one contestant, from when the broker appended them to
// the input to when a read_committed consumer of the clean topic had them, and what the process
// costs when nothing comes.
type Latency struct {
	Contestant string  `json:"contestant"`
	Round      int     `json:"round"`
	Offered    int     `json:"offered_per_second"`
	Records    int     `json:"records"` // that were measured
	P50        float64 `json:"p50_ms"`
	P99        float64 `json:"p99_ms"`
	Max        float64 `json:"max_ms"`
	CPU        float64 `json:"cpu_percent"`      // of one core, under this load
	IdleCPU    float64 `json:"idle_cpu_percent"` // of one core
	IdleMiB    float64 `json:"idle_rss_mib"`
}

// latencyTimes are the phases of one measurement.
type latencyTimes struct {
	warmUp, measured time.Duration
	calm, idle       time.Duration // after the last record, and then with nothing to do
}

// measure lets the brokers stamp the records when they append them; kdedup keeps timestamps. So the
// clock of the broker and this one must agree, as on one machine they do.
func (l *Latency) measure(
	ctx context.Context, c contestant, s *stage, processes int, times latencyTimes,
) (err error) {
	defer func() { err = errors.Join(err, s.clear(ctx)) }()
	appended := "LogAppendTime"
	if err := s.prepare(
		ctx, c, map[string]*string{"message.timestamp.type": &appended},
	); err != nil {
		return err
	}
	if err := s.settle(ctx); err != nil {
		return err
	}
	all, err := startAll(ctx, c, s, processes)
	if err != nil {
		return err
	}
	defer func() {
		_, stopErr := stopAll(all)
		err = errors.Join(err, stopErr)
	}()
	for _, p := range all {
		if _, err := p.waitAssigned(ctx); err != nil {
			return err
		}
	}
	if err := l.load(ctx, all[0], s, times); err != nil {
		return err
	}
	return l.idle(ctx, all[0], times)
}

// load offers records at an even pace and reads the clean topic meanwhile.
func (l *Latency) load(ctx context.Context, p *process, s *stage, times latencyTimes) error {
	reader, err := openReader(ctx, s)
	if err != nil {
		return err
	}
	var (
		warm = time.Now().Add(times.warmUp)
		cpu  = cpuWatch{process: p}
	)
	messages, err := offer(ctx, s, l.Offered, times, func() {
		warm = time.Now()
		cpu.begin()
	})
	cpuTook, cpuErr := cpu.end()
	delays, readErr := reader.stop(ctx, messages, warm)
	if err := errors.Join(err, cpuErr, readErr); err != nil {
		return err
	}
	if len(delays) == 0 {
		return errors.New("no record was measured: -for is too short")
	}
	slices.Sort(delays)
	l.Records, l.CPU = len(delays), 100*cpuTook
	l.P50, l.P99, l.Max = milliseconds(percentile(delays, 0.5)),
		milliseconds(percentile(delays, 0.99)), milliseconds(delays[len(delays)-1])
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// idle measures the process when nothing comes any more.
func (l *Latency) idle(ctx context.Context, p *process, times latencyTimes) error {
	if err := sleep(ctx, times.calm); err != nil {
		return err
	}
	cpu := cpuWatch{process: p}
	cpu.begin()
	if err := sleep(ctx, times.idle); err != nil {
		return err
	}
	took, err := cpu.end()
	if err != nil {
		return err
	}
	memory, err := memoryOf(p.cmd.Process.Pid)
	l.IdleCPU, l.IdleMiB = 100*took, float64(memory.now)/(1<<20)
	return err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// offerLinger is what Kafka's own producer waits for since 4.0 (KIP-1030). Without it each record
// is a request of its own, and the broker's work for these is measured, too.
const offerLinger = 5 * time.Millisecond

// offer produces the records of the workload at its rate, each when it is due. Late ones
// follow at once; the latency is counted from the append, so that does not distort it. It calls
// warm before the first record that counts, and returns of how many messages the records were.
func offer(
	ctx context.Context, s *stage, rate int, times latencyTimes, warm func(),
) (messages int, err error) {
	client, err := kgo.NewClient(append(s.connection(),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(offerLinger))...)
	if err != nil {
		return 0, fmt.Errorf("offer records: %w", err)
	}
	defer client.Close()
	var (
		failure error
		once    sync.Once
		spec    = s.spec
		pace    = newPacer(rate)
	)
	defer pace.stop()
	spec.Records = int((times.warmUp + times.measured).Seconds() * float64(rate))
	spec.Each(s.input(), func(r *kgo.Record) bool {
		if pace.n == int(times.warmUp.Seconds()*float64(rate)) {
			warm()
		}
		if !pace.wait(ctx) {
			return false
		}
		messages = max(messages, workload.MessageOf(r)+1)
		client.Produce(ctx, r, func(_ *kgo.Record, err error) {
			if err != nil {
				once.Do(func() { failure = err })
			}
		})
		return true
	})
	if err := client.Flush(ctx); err != nil {
		return 0, fmt.Errorf("offer records: %w", err)
	}
	return messages, failure
}

// pacer spreads events evenly over time.
type pacer struct {
	rate  int
	start time.Time
	tick  *time.Ticker
	n     int // events so far
}

func newPacer(rate int) *pacer {
	return &pacer{rate: rate, start: time.Now(), tick: time.NewTicker(time.Millisecond)}
}

func (p *pacer) stop() { p.tick.Stop() }

// wait returns when the next event is due; false when ctx ended first.
func (p *pacer) wait(ctx context.Context) bool {
	due := time.Duration(p.n) * time.Second / time.Duration(p.rate)
	for time.Since(p.start) < due {
		select {
		case <-p.tick.C:
		case <-ctx.Done():
			return false
		}
	}
	p.n++
	return true
}
