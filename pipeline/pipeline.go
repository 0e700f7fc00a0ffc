package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/forwarder"
	"github.com/kdedup/kdedup/internal/outage"
)

// Options describe the pipeline of one input topic.
type Options struct {
	Name  string // the input topic
	Lanes int
	// Join makes a new session for a lane. It is called again after a failure, and reads again what
	// may have changed meanwhile, such as the limits of the output topics.
	Join func(ctx context.Context, lane int) (Session, *forwarder.Topics, error)
	// Judge makes the deduper of a lane.
	Judge func(lane int) Judge
	// Identify is asked once a lane's first batch has no message ID at all, before what the policy
	// says is done with it. Its error says that the input shows none: the lane gives the batch
	// back, and asks again with the next session. Nil: such a batch is like any other.
	Identify func(ctx context.Context) error
	// Extract tells the message ID of a copy that was dropped, for those who ask which ones were.
	// Nil: nobody asks for IDs.
	Extract func(*kgo.Record) (dedup.ID, dedup.MissingReason)
	// Compare tells in what conflicts differ. Nil: nobody does.
	Compare         CompareConflicts
	Policy          Policy
	TTL             time.Duration // for the metrics: how long a claim holds
	Sliding         bool          // the TTL counts from the last copy
	ShutdownTimeout time.Duration // how long the batch in hand may take after Run's context ended
	Collectors      *Collectors
	Tracer          Tracer // nil: no traces
	// Pause waits before a lane joins again. Nil is right but for the simulation, whose chance must
	// come from its seed.
	Pause func(ctx context.Context, d time.Duration)
	// Outages logs the failures of lanes. Pipelines share it, so that one cause is one line of the
	// log. Nil: the pipeline has its own.
	Outages *Outages
	Logger  *slog.Logger
}

// compares is nil where conflicts are forwarded without a word.
func (o *Options) compares() CompareConflicts {
	if o.Policy.Mode == Observe {
		return nil
	}
	return o.Compare
}

// Outages logs the lanes that fail and those that stopped.
type Outages struct{ failing, stopping *outage.Log }

// NewOutages writes to the log.
func NewOutages(log *slog.Logger) *Outages {
	return &Outages{
		failing: outage.New(outage.Options{Message: "lane failed, joining again",
			Recovered: "all lanes go on again", Lanes: true, Logger: log}),
		stopping: outage.New(outage.Options{Message: "lane stopped", Fatal: true, Lanes: true,
			Logger: log}),
	}
}

// Pipeline runs the lanes of one input topic.
type Pipeline struct {
	options     Options
	supervisors []*supervisor
	dropped     droppedCopies
}

// New prepares the lanes; it connects to nothing.
func New(o Options) *Pipeline {
	p := &Pipeline{options: o, dropped: droppedCopies{extract: o.Extract}}
	outages := o.Outages
	if outages == nil {
		outages = NewOutages(o.Logger)
	}
	for n := range o.Lanes {
		s := &supervisor{
			number: n, options: &p.options, judge: o.Judge(n), dropped: &p.dropped,
			metrics: o.Collectors.For(o.Name, n).within(o.TTL, o.Sliding),
			log:     o.Logger.With("topic", o.Name, "lane", n),
		}
		s.failing = outages.failing.Reporter(o.Name, n, s.healthy)
		s.stopping = outages.stopping.Reporter(o.Name, n, nil)
		s.metrics.ready(s.ready)
		p.supervisors = append(p.supervisors, s)
	}
	return p
}

// Run works until ctx ends, then lets every lane finish the batch in hand, and returns when all
// have left the group. It returns early only with an error that wraps ErrStop or its kin.
func (p *Pipeline) Run(ctx context.Context) error {
	polling, endPolling := context.WithCancel(ctx)
	defer endPolling()
	work, endWork := context.WithCancelCause(context.WithoutCancel(ctx))
	defer endWork(nil)
	defer context.AfterFunc(polling, func() {
		timer := time.AfterFunc(p.options.ShutdownTimeout, func() {
			endWork(context.DeadlineExceeded)
		})
		context.AfterFunc(work, func() { timer.Stop() })
	})()
	var wg sync.WaitGroup
	errs := make([]error, len(p.supervisors))
	for i, s := range p.supervisors {
		wg.Go(func() {
			if errs[i] = s.run(polling, work); errs[i] != nil {
				endPolling()
			}
		})
	}
	wg.Wait()
	for _, s := range p.supervisors {
		s.stopping.Forget()
	}
	return p.joined(errs, error.Error)
}

func (p *Pipeline) kind(err error) string { return outage.Kind(p.options.Name, err) }

// joined is one error for each kind of those of the lanes, in whose place it says how many have it.
func (p *Pipeline) joined(errs []error, kind func(error) string) error {
	var firsts []error
	lanes := make(map[string][]int)
	for lane, err := range errs {
		if err == nil {
			continue
		}
		if lanes[kind(err)] == nil {
			firsts = append(firsts, err)
		}
		lanes[kind(err)] = append(lanes[kind(err)], lane)
	}
	for i, err := range firsts {
		who := fmt.Sprintf("lane %d", lanes[kind(err)][0])
		if n := len(lanes[kind(err)]); n > 1 {
			who = fmt.Sprintf("%d lanes", n)
		}
		firsts[i] = fmt.Errorf("%s %s: %w", p.options.Name, who, err)
	}
	return errors.Join(firsts...)
}

// Held lists the partitions that wait at a record that can be delivered nowhere, as "orders[3] held
// at offset 812: reason".
func (p *Pipeline) Held() (held []string) {
	for _, lane := range p.Lanes() {
		for _, a := range lane.Assigned {
			if a.Held != nil {
				held = append(held, fmt.Sprintf("%s[%d] %v", p.options.Name, a.Partition, a.Held))
			}
		}
	}
	return held
}

// Ready returns nil if every lane is a member of the group, and otherwise why not.
func (p *Pipeline) Ready() error {
	errs := make([]error, len(p.supervisors))
	for i, s := range p.supervisors {
		errs[i] = s.ready()
	}
	return p.joined(errs, p.kind)
}
