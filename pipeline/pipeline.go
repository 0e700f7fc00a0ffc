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
	"github.com/kdedup/kdedup/internal/trouble"
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
	Extract         func(*kgo.Record) (dedup.ID, dedup.MissingReason)
	Policy          Policy
	TTL             time.Duration // for the metrics: how long a claim holds
	Sliding         bool          // the TTL counts from the last copy
	ShutdownTimeout time.Duration // how long the batch in hand may take after Run's context ended
	Collectors      *Collectors
	Tracer          Tracer // nil: no traces
	// Pause waits before a lane joins again. Nil is right but for the simulation, whose chance must
	// come from its seed.
	Pause  func(ctx context.Context, d time.Duration)
	Logger *slog.Logger
}

// Pipeline runs the lanes of one input topic.
type Pipeline struct {
	options     Options
	supervisors []*supervisor
	dropped     droppedCopies
	failing     *trouble.Desk // hears of the lanes that fail
	stopping    *trouble.Desk // and of those that cannot go on
}

// New prepares the lanes; it connects to nothing.
func New(o Options) *Pipeline {
	p := &Pipeline{options: o, dropped: droppedCopies{extract: o.Extract}}
	log := o.Logger.With("topic", o.Name)
	p.failing = trouble.New(trouble.Options{Begins: "lane failed, joining again",
		Over: "all lanes go on again", Who: "lane", Logger: log,
		Well: func(lane int) (time.Time, bool) { return p.supervisors[lane].well() }})
	p.stopping = trouble.New(trouble.Options{Begins: "lane stopped", Fatal: true, Who: "lane",
		Logger: log})
	for n := range o.Lanes {
		s := &supervisor{
			number: n, options: &p.options, judge: o.Judge(n), dropped: &p.dropped,
			failing: p.failing, stopping: p.stopping,
			metrics: o.Collectors.For(o.Name, n).within(o.TTL, o.Sliding),
			log:     o.Logger.With("topic", o.Name, "lane", n),
		}
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
	for n := range p.supervisors {
		p.stopping.Gone(n)
	}
	return p.joined(errs, error.Error)
}

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
	return p.joined(errs, trouble.Kind)
}
