//go:build !race

package simulation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/forwarder"
	"github.com/kdedup/kdedup/pipeline"
)

// process is one that runs a pipeline of one lane.
type process struct {
	w       *world
	slot    int
	retire  context.CancelFunc // it is told to end, and finishes its batch
	paused  int                // it stands still until this step
	killed  bool
	fails   bool // it ends with a record that has no ID
	ended   bool
	err     error
	client  *client // of its session; nil without one
	session *observed
}

// slot is where processes run one after the other, under one instance name. Their metrics go on, as
// those of a process that is scraped under the same name.
type slot struct {
	pipelines *pipeline.Collectors
	members   *consumer.Metrics
	room      *consumer.BatchLimit
	registry  *prometheus.Registry
	txnID     *transactionalID
	skew      time.Duration // of its clock
	joins     int
	expected  [numOutcomes]int
	either    [numOutcomes]int // what may have counted as this instead
}

const transactionTimeout = 15 * time.Second

const numOutcomes = int(pipeline.DeadLettered) + 1

func (w *world) makeSlots() {
	for i := range w.mix.processes {
		registry := prometheus.NewRegistry()
		s := &slot{
			registry: registry, pipelines: pipeline.NewCollectors(registry),
			members: consumer.NewCollectors(registry).For(inputTopic), txnID: &transactionalID{},
			room: consumer.NewBatchLimit(w.mix.batch, 1<<20, transactionTimeout, nil),
		}
		if w.mix.skewed {
			s.skew = time.Duration(w.dice.n(120)-60) * time.Second
		}
		if i == 1 && w.mix.sharedInstance {
			s.txnID = w.slots[0].txnID
		}
		w.slots = append(w.slots, s)
		w.processes = append(w.processes, nil)
	}
	for i := range w.slots {
		w.start(i)
	}
}

// start begins a process in a slot whose last one ended.
func (w *world) start(slot int) {
	polling, retire := context.WithCancel(context.Background())
	p := &process{w: w, slot: slot, retire: retire,
		fails: w.mix.policy.OnMissingID == pipeline.Fail}
	log := slog.New(slog.DiscardHandler)
	if w.on {
		log = slog.New(slog.NewTextHandler(traceWriter{w, slot},
			&slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	lane := pipeline.New(pipeline.Options{
		Name: inputTopic, Lanes: 1, Join: p.join, Policy: w.mix.policy,
		ShutdownTimeout: time.Minute,
		Judge: func(int) pipeline.Judge {
			// No pauses: the scheduler says who goes on.
			retry := dedup.Retry{First: 1, Max: 1, GiveUpAfter: w.mix.giveUp}
			return dedup.New(scope, store{p}, dedup.Options{
				Extractor: w.extractor, Retry: retry, Logger: log,
			})
		},
		Collectors: w.slots[slot].pipelines, Logger: log,
		Pause: func(_ context.Context, d time.Duration) { p.pause("pause", w.passed(d)) },
	})
	w.processes[slot] = p
	w.trace(slot, "process starts")
	go func() {
		defer func() { p.ended = true }()
		p.err = lane.Run(polling)
	}()
	w.settle()
}

// passed tells when a pause is over: at any step, or when the world drains after as many as let
// another process handle a batch. Two of one instance name would fence each other for ever if
// neither waited.
func (w *world) passed(d time.Duration) func() bool {
	began := w.step
	return func() bool { return !w.draining || w.step >= began+int(d/(10*time.Millisecond)) }
}

// traceWriter puts what the product logs into the trace.
type traceWriter struct {
	w    *world
	slot int
}

var _ io.Writer = traceWriter{}

func (t traceWriter) Write(line []byte) (int, error) {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	t.w.logged = append(t.w.logged, fmt.Sprintf("%6d lane %d  %s", t.w.step, t.slot, line))
	return len(line), nil
}

// join makes a session; the group hears of it at once and assigns partitions later.
func (p *process) join(context.Context, int) (pipeline.Session, *forwarder.Topics, error) {
	w := p.w
	p.pause("join", nil)
	if w.fault(faultJoin) || w.away[clusterOfInput] || w.away[clusterOfOutput] {
		return nil, nil, errors.New("simulation: no broker")
	}
	slot := w.slots[p.slot]
	slot.joins++
	c := &client{w: w, process: p, number: slot.joins, generation: -1,
		held: make([]held, w.mix.partitions), kept: make(map[*source]kept),
		txnID: slot.txnID}
	p.client = c
	opts := consumer.Options{
		Input: inputTopic, ConsumerGroup: w.group.name, FenceTopic: topicFence, TTL: ttl,
		Limit: slot.room, TransactionTimeout: transactionTimeout,
		Metrics: slot.members, Logger: slog.New(slog.DiscardHandler),
	}
	if w.on {
		opts.Logger = slog.New(slog.NewTextHandler(traceWriter{w, p.slot},
			&slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	var session pipeline.Session
	var err error
	if w.mix.transactional {
		session, err = consumer.NewTransactional(opts,
			func(e consumer.Events) (consumer.TransactionalClient, error) {
				c.events = e
				c.initProducer()
				return transactions{c}, nil
			})
	} else {
		session, err = consumer.NewAtLeastOnce(opts,
			func(e consumer.Events) (consumer.Client, error) {
				c.events = e
				return c, nil
			})
	}
	if err != nil {
		return nil, nil, err
	}
	w.group.members = append(w.group.members, c)
	w.group.changed = true
	w.trace(p.slot, "joins")
	p.session = &observed{session, c}
	return p.session, w.forwards, nil
}

// crash ends a process where it stands. What was on its way to the brokers is left to chance.
func (w *world) crash(p *process) {
	if p.ended {
		return
	}
	w.trace(p.slot, "process dies")
	p.killed = true
	if p.client != nil && !p.client.closed {
		p.client.die()
	}
	for _, c := range append([]*call(nil), w.waiting...) {
		if c.process == p {
			w.resume(c)
		}
	}
	p.retire()
	w.settle()
}

// observed tells the world what a lane does with its session.
type observed struct {
	pipeline.Session
	client *client
}

func (o *observed) Poll(ctx context.Context) (*consumer.Batch, error) {
	c := o.client
	c.must(c.attempt == nil, "poll with a batch in hand")
	b, err := o.Session.Poll(ctx)
	if errors.Is(err, consumer.ErrNotDelivered) && !c.passedOver && !c.w.mix.compacted &&
		c.w.mix.weights[eventCut] == 0 {
		c.w.failf("a session asks for the wrong records: %v", err)
	}
	if b != nil {
		c.attempt = c.w.newAttempt(c, b)
		c.w.trace(c.process.slot, "polls %v", c.attempt)
		if c.commit != nil && !c.commit.landed {
			c.w.saw(sightPolledAhead)
		}
	}
	return b, err
}

func (o *observed) Commit(ctx context.Context, b *consumer.Batch) error {
	c, a := o.client, o.client.attempt
	c.must(a != nil && a.batch == b, "commit of a batch that is not in hand")
	err := o.Session.Commit(ctx, b)
	switch {
	case err == nil:
		c.w.count(c.process.slot, a)
		for _, s := range a.sources {
			delete(c.kept, s)
		}
		c.w.trace(c.process.slot, "committed %v", a)
		c.attempt = nil
	case errors.Is(err, consumer.ErrAborted):
		c.attempt = nil
	}
	return err
}

func (o *observed) Abort(ctx context.Context, b *consumer.Batch, why error) error {
	c := o.client
	c.must(c.attempt != nil, "abort without a batch")
	c.w.saw(sightGivenBack)
	c.w.trace(c.process.slot, "gives back %v: %v", c.attempt, why)
	c.aborting = true
	if stuck := (*forwarder.Stuck)(nil); errors.As(why, &stuck) && !c.w.mix.transactional {
		c.attempt.keep()
	}
	err := o.Session.Abort(ctx, b, why)
	c.aborting = false
	if errors.Is(err, consumer.ErrAborted) {
		c.attempt = nil
	}
	return err
}

// count adds what the metrics must show once the lane has heard that its batch is committed.
func (w *world) count(slot int, a *attempt) {
	for o, n := range a.outcomes {
		w.slots[slot].expected[o] += n
		w.slots[slot].either[o] += a.either[o]
	}
}
