// Package process is the kdedup that runs: the pipelines of a configuration, the file that it
// follows, the server that shows what they do.
//
// New listens, and Run works until its context ends: it connects to Kafka and the store
// (running.go), again and again while one does not answer (outage.go), begins the pipelines
// (pipelines.go, lanes.go) and applies what the file says (config_file.go, reload.go). One
// goroutine, that of Run, begins and ends pipelines. Close comes after Run.
package process

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/claimmetrics"
	"github.com/kdedup/kdedup/internal/otlp/push"
	"github.com/kdedup/kdedup/internal/telemetry"
	"github.com/kdedup/kdedup/pipeline"
	"github.com/kdedup/kdedup/pipeline/tracing"
	"github.com/kdedup/kdedup/process/server"
)

// Process is everything that one kdedup process runs.
type Process struct {
	log        *slog.Logger
	level      *slog.LevelVar // of log
	events     *eventLog      // the last warnings and errors of log
	registry   *prometheus.Registry
	summed     *telemetry.Summed // registry, as it is shown
	sharing    sharing
	families   families
	server     *server.Server
	lookEvery  time.Duration // the pause between two looks for the topics of patterns
	clusterIDs clusterIDs
	beside     beside                 // the API
	tracing    *tracing.Provider      // nil: no traces
	pusher     *push.Pusher           // nil: metrics are only served
	active     atomic.Pointer[active] // replaced by Run alone
	// All pipelines log their outages in one place, so that one cause is one line.
	laneOutages  *pipeline.Outages
	storeOutages *dedup.Outages
	looks        looks // of the topics of patterns
	starting     atomic.Pointer[notStarted]
	running      atomic.Pointer[running] // nil: starting says why
	// What outlives a start that failed. The goroutine of Run has it.
	clients *clients
	opened  *openedStore
}

// Config is the configuration in force. A reload changes only its topics and what is in applied.
func (p *Process) Config() config.Config { return p.active.Load().config }

// Registry has the metrics of the process, each topic's for itself.
func (p *Process) Registry() *prometheus.Registry { return p.registry }

// Shown are the metrics of the process as /metrics shows them.
func (p *Process) Shown() prometheus.Gatherer { return p.summed }

// URL is that of the status page.
func (p *Process) URL() string { return p.server.URL() }

// Store is that of the claims of a process that Wire has connected.
func (p *Process) Store() dedup.Store { return p.running.Load().store }

// Lanes are those of all pipelines that run.
func (p *Process) Lanes() (all []pipeline.LaneState) {
	for _, r := range p.active.Load().pipelines {
		all = append(all, r.Lanes()...)
	}
	return all
}

// Totals is what the pipeline of an input has counted so far.
func (p *Process) Totals(input string) (pipeline.Totals, claimmetrics.Totals) {
	return p.families.pipeline.Totals(input), p.families.claims.Totals(input)
}

// Wire connects everything and checks it, but starts no pipeline. What it opened before an error is
// closed again.
func Wire(
	ctx context.Context, c config.Config, log *slog.Logger, level *slog.LevelVar,
) (*Process, error) {
	p, err := New(c, log, level)
	if err != nil {
		return nil, err
	}
	if err := p.open(ctx, c); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// New makes what needs no other server: its own server listens. Run connects the rest.
func New(c config.Config, log *slog.Logger, level *slog.LevelVar) (p *Process, err error) {
	events := newEventLog(log.Handler())
	p = &Process{log: slog.New(events), level: level, events: events, registry: newRegistry(),
		lookEvery: lookEvery}
	noTopics, _ := c.Expand(nil)
	p.active.Store(&active{file: c, config: noTopics, since: time.Now()})
	p.laneOutages, p.storeOutages = pipeline.NewOutages(p.log), dedup.NewOutages(p.log)
	p.starting.Store(&notStarted{errors.New("connecting to Kafka and the store")})
	p.families = newFamilies(p.registry, c)
	p.beside.begin(p.registry, p.serves())
	p.summed = telemetry.NewSummed(p.registry, p.groups, addedUp)
	if p.pusher, err = p.newPusher(c); err != nil {
		return nil, err
	}
	if p.tracing, err = openTracing(c, p.families.tracing, p.log); err != nil {
		p.Close()
		return nil, err
	}
	if p.server, err = server.New(p.serverOptions()); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// ServerName is what the server of a process calls itself in each answer.
const ServerName = server.Name

// Run works until ctx ends, or no pipeline can go on. Meanwhile it applies what the file says; a
// nil file stays as it was read.
func (p *Process) Run(ctx context.Context, file *ConfigFile) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- p.server.Run(serving) }()
	p.log.Info("the status page answers", "address", p.server.Addr(), "page", p.server.URL())
	notifySystemd(p.log, systemdReady) // systemd would end a start that waits for Kafka
	var pushing sync.WaitGroup
	pushing.Go(func() { p.push(ctx, serving) })
	err := p.work(ctx, func() { p.endWithTheLast(cancel) }, file)
	cancel()
	stopServing() // metrics stay readable while the last batches end
	pushing.Wait()
	return errors.Join(err, <-ended)
}

// work begins the pipelines, when everything is connected, and returns when they have ended.
func (p *Process) work(ctx context.Context, giveUp context.CancelFunc, file *ConfigFile) error {
	began := time.Now()
	defer p.serveBeside(ctx)()
	if p.running.Load() == nil {
		if err := p.openPatiently(ctx, p.active.Load().file); err != nil {
			return err
		}
	}
	for _, r := range p.active.Load().pipelines {
		p.announce(r)
		r.begin(ctx, giveUp)
	}
	var telling sync.WaitGroup
	telling.Go(func() { p.tellTotals(ctx, totalsEvery) })
	defer telling.Wait()
	if file != nil && ctx.Err() == nil {
		p.running.Load().follow(ctx, giveUp, file)
	}
	<-ctx.Done()
	notifySystemd(p.log, systemdStopping)
	err := p.active.Load().wait()
	_ = p.events.flush() // what was held back belongs before the last line
	p.log.Info("stopped", append([]any{"after", time.Since(began).Round(time.Millisecond)},
		p.counted().fields()...)...)
	return err
}

// RunBeside runs the process while work does, and stops it after that. When the process ends first,
// so does work's context.
func (p *Process) RunBeside(ctx context.Context, work func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		defer cancel()
		ended <- p.Run(ctx, nil)
	}()
	err := work(ctx)
	cancel()
	return errors.Join(<-ended, err)
}

// Close ends everything; the pipelines have returned by then.
func (p *Process) Close() {
	if p.server != nil {
		_ = p.server.Close() // it has been closed already if it ever ran
	}
	if r := p.running.Load(); r != nil {
		r.close()
	}
	closeTracing(p.tracing, p.Config(), p.log)
	p.closeStore(nil)
	if p.clients != nil {
		p.clients.close()
	}
	if p.pusher != nil {
		p.pusher.Stop(context.Background()) // it has stopped already if the process ever ran
	}
	_ = p.events.flush() // there is nowhere left to say it
}
