// Package process is the kdedup that runs: the pipelines of a configuration, the file that it
// follows, the server that shows what they do.
//
// New listens, and Run works until its context ends: it connects to Kafka and the store, again and
// again while one does not answer (outage.go), begins the pipelines (pipelines.go, lanes.go) and
// applies what the file says (config_file.go, reload.go). One goroutine, that of Run, begins and
// ends pipelines. Close comes after Run.
package process

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/consumer/client"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/claimmetrics"
	"github.com/kdedup/kdedup/dedup/messageid/registry"
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
	connector  *kafka.Connector
	forwards   *kafka.Connector // to what is forwarded to; mostly it is connector
	server     *server.Server
	lookEvery  time.Duration // the pause between two looks for the topics of patterns
	clusters   kafka.Clusters
	clusterIDs clusterIDs
	takesOver  *kgo.Client // see client.Options
	store      dedup.Store
	opened     *openedStore // what store is made of
	beside     beside       // the API
	schemas    *registry.Client
	knowledge  connect.Knowledge
	tracing    *tracing.Provider      // nil: no traces
	pusher     *push.Pusher           // nil: metrics are only served
	active     atomic.Pointer[active] // replaced by Run alone
	// All pipelines log their outages in one place, so that one cause is one line.
	laneOutages  *pipeline.Outages
	storeOutages *dedup.Outages
	looks        looks                      // of the topics of patterns
	starting     atomic.Pointer[notStarted] // nil when all that open opens is there
}

// Config is the configuration in force. A reload changes only its topics and what is in applied.
func (p *Process) Config() config.Config { return p.active.Load().config }

// Registry has the metrics of the process, each topic's for itself.
func (p *Process) Registry() *prometheus.Registry { return p.registry }

// Shown are the metrics of the process as /metrics shows them.
func (p *Process) Shown() prometheus.Gatherer { return p.summed }

// URL is that of the status page.
func (p *Process) URL() string { return p.server.URL() }

// Store is that of the claims, once it is open.
func (p *Process) Store() dedup.Store { return p.store }

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

// open connects everything and checks it. What it opened before an error is closed again, and it
// may be called again.
func (p *Process) open(ctx context.Context, file config.Config) (err error) {
	whole := ctx // for the topics of patterns, of which each has its time
	ctx, cancel := context.WithTimeout(ctx, connect.StartTimeout)
	defer cancel()
	defer func() {
		if err != nil {
			p.disconnect()
		}
	}()
	if keepsOnly(file) {
		return p.openKeeping(ctx, file)
	}
	if p.serves() && !file.Store.Logs() { // the API needs no broker for it
		if err := p.openStore(ctx, file); err != nil {
			return err
		}
	}
	if err := p.connect(ctx, file); err != nil {
		return err
	}
	c, err := p.expand(ctx, file)
	if err != nil {
		return err
	}
	entries, matched := named(connect.Entries(c.Topics))
	entries, refusal := p.admit(ctx, entries, func(some []connect.Entry) error {
		return p.checkNamed(ctx, c, some)
	})
	if refusal != nil && (len(matched) == 0 || !errors.As(refusal, new(noneAdmitted))) {
		return refusal
	}
	p.tellSettings(ctx, entries)
	p.tellNamesakes(ctx, entries)
	if p.schemas, err = connect.Schemas(c, p.log); err != nil {
		return err
	}
	if err := p.openStore(ctx, c); err != nil {
		return err
	}
	p.store = p.families.claims.Observed(p.opened.store)
	p.knowledge, err = connect.NewKnowledge(ctx, p.clusters.Input, p.store, c.Store)
	if err != nil {
		return err
	}
	p.log.Info("the store is open", "store", connect.StoreInUse(c))
	if len(entries) > 0 {
		entries, err = p.admit(ctx, entries, func(some []connect.Entry) error {
			return p.register(ctx, some)
		})
		if refusal = errors.Join(refusal, err); err != nil &&
			(len(matched) == 0 || !errors.As(err, new(noneAdmitted))) {
			return err
		}
	}
	if matched, err = p.prepareMatched(whole, file, c, matched); err != nil {
		return err
	}
	if refusal != nil && len(entries)+len(matched) == 0 {
		return refusal
	}
	if err := p.countStore(); err != nil {
		return err
	}
	p.accept(entries)
	p.activate(file, c, nil, append(entries, matched...))
	p.families.config.Loaded(ConfigHash(file), p.active.Load().since)
	p.starting.Store(nil)
	p.families.started.Set(1)
	return nil
}

// ServerName is what the server of a process calls itself in each answer.
const ServerName = server.Name

// connect makes the clients that all lanes share. They stay when open has failed: a broker that
// admits few new connections a second would have to admit them again.
func (p *Process) connect(ctx context.Context, file config.Config) (err error) {
	if p.clusters.Input != nil {
		return nil
	}
	if p.connector, err = kafka.NewConnector(ctx, file.Kafka, p.log); err != nil {
		return err
	}
	if p.forwards, err = kafka.NewOutputConnector(ctx, file.Kafka, p.connector,
		p.log); err != nil {
		return err
	}
	if p.takesOver, err = connect.NewClient(p.forwards, file, p.log,
		client.TakingOver()); err != nil {
		return err
	}
	p.clusters, err = connect.NewClients(p.connector, p.forwards, file, p.log,
		append(client.Writes(), connect.SeesNewTopics)...)
	if err != nil {
		p.takesOver.Close()
	}
	return err
}

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
	if p.starting.Load() != nil {
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
		p.follow(ctx, giveUp, file)
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
	p.disconnect()
	closeTracing(p.tracing, p.Config(), p.log)
	p.closeStore(nil)
	if p.clusters.Input != nil {
		p.clusters.Close()
		p.takesOver.Close()
	}
	if p.pusher != nil {
		p.pusher.Stop(context.Background()) // it has stopped already if the process ever ran
	}
	_ = p.events.flush() // there is nowhere left to say it
}

// disconnect ends what open opened, but for the clients.
func (p *Process) disconnect() {
	p.closeStore(p.beside.uses)
	if p.schemas != nil {
		p.schemas.Close()
	}
	p.store, p.schemas = nil, nil
}
