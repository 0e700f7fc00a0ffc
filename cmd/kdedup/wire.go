package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/kafka"
	"github.com/kdedup/kdedup/internal/tracing"
	"github.com/kdedup/kdedup/server"
)

// startTimeout bounds every command's talk with the servers before the work begins.
const startTimeout = 60 * time.Second

// process is everything that one kdedup process runs.
type process struct {
	log       *slog.Logger
	level     *slog.LevelVar // of log
	events    *eventLog      // the last warnings and errors of log
	registry  *prometheus.Registry
	families  families
	connector *kafka.Connector
	server    *server.Server
	admin     *kgo.Client
	store     dedup.Store
	knowledge knowledge
	identity  string                     // of the store
	tracing   *tracing.Provider          // nil: no traces
	active    atomic.Pointer[active]     // replaced by run alone
	starting  atomic.Pointer[notStarted] // nil when connector, admin, store and tracing are there
}

// config is the configuration in force. A reload changes only its topics and what is in applied.
func (p *process) config() config.Config { return p.active.Load().config }

// wire connects everything and checks it, but starts no pipeline. What it opened before an error is
// closed again.
func wire(ctx context.Context, c config.Config, log *slog.Logger, level *slog.LevelVar) (*process, error) {
	p, err := newProcess(c, log, level)
	if err != nil {
		return nil, err
	}
	if err := p.open(ctx, c); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// newProcess makes what needs no other server: its own one listens. run connects the rest.
func newProcess(c config.Config, log *slog.Logger, level *slog.LevelVar) (p *process, err error) {
	events := newEventLog(log.Handler())
	p = &process{log: slog.New(events), level: level, events: events, registry: newRegistry()}
	p.active.Store(&active{config: c, since: time.Now()})
	p.starting.Store(&notStarted{errors.New("connecting to Kafka and the store")})
	p.families = newFamilies(p.registry, c)
	if p.server, err = server.New(p.serverOptions()); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// open connects everything and checks it. What it opened before an error is closed again, and it may be called anew.
func (p *process) open(ctx context.Context, c config.Config) (err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	defer func() {
		if err != nil {
			p.disconnect()
		}
	}()
	if p.connector, err = kafka.NewConnector(ctx, c.Kafka, p.log); err != nil {
		return err
	}
	if p.admin, err = newClient(p.connector, c, p.log); err != nil {
		return err
	}
	entries := entriesOf(c.Topics)
	if err := checkTopics(ctx, p.admin, c, entries); err != nil {
		return err
	}
	for _, e := range entries { // what would be refused here runs already, or was told by setup
		tell := warnOf(p.log, e.Topic)
		if err := compareTopics(ctx, p.admin, e.Topic, true, tell); err != nil {
			tell(err.Error())
		}
	}
	metrics := prometheus.NewRegistry() // of this attempt's store
	if p.store, err = openStore(ctx, c.Store, metrics, p.log); err != nil {
		return err
	}
	if err := checkRights(ctx, p.store); err != nil {
		return err
	}
	p.store = p.families.dedup.Observed(p.store)
	if p.knowledge, err = newKnowledge(ctx, p.admin, p.store, c.Store); err != nil {
		return err
	}
	p.log.Info("the store is open", "store", p.knowledge.name)
	if p.tracing, err = openTracing(ctx, c, p.families.tracing, p.log); err != nil {
		return err
	}
	if err := p.register(ctx, entries); err != nil {
		return err
	}
	if err := p.registry.Register(metrics); err != nil {
		return fmt.Errorf("register the store's metrics: %w", err)
	}
	p.activate(c, nil, entries)
	p.starting.Store(nil)
	p.families.started.Set(1)
	return nil
}

// adminClient is a client that joins no group, for a command.
func adminClient(ctx context.Context, c config.Config, log *slog.Logger, more ...kgo.Opt) (*kgo.Client, error) {
	connector, err := kafka.NewConnector(ctx, c.Kafka, log)
	if err != nil {
		return nil, err
	}
	return newClient(connector, c, log, more...)
}

func newClient(connector *kafka.Connector, c config.Config, log *slog.Logger, more ...kgo.Opt) (*kgo.Client, error) {
	client, err := kgo.NewClient(append(connector.AdminOptions("kdedup-"+c.Instance, log), more...)...)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	return client, nil
}

// run works until ctx ends or a pipeline cannot go on; then all the others stop too. Meanwhile it
// applies what the file says; a nil file stays as it was read.
func (p *process) run(ctx context.Context, file *configFile) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- p.server.Run(serving) }()
	p.log.Info("serving metrics", "address", p.server.Addr())
	notifySystemd(p.log, daemon.SdNotifyReady) // systemd would end a start that waits for Kafka
	err := p.work(ctx, cancel, file)
	stopServing() // metrics stay readable while the last batches end
	return errors.Join(err, <-ended)
}

// work begins the pipelines, when everything is connected, and returns when they have ended.
func (p *process) work(ctx context.Context, giveUp context.CancelFunc, file *configFile) error {
	if p.starting.Load() != nil {
		if err := p.openPatiently(ctx, p.config()); err != nil {
			return err
		}
	}
	for _, r := range p.active.Load().pipelines {
		r.begin(ctx, giveUp)
	}
	if file != nil && ctx.Err() == nil {
		p.follow(ctx, giveUp, file)
	}
	<-ctx.Done()
	notifySystemd(p.log, daemon.SdNotifyStopping)
	return p.active.Load().wait()
}

// notifySystemd does nothing where systemd did not start the process.
func notifySystemd(log *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("systemd was not notified", "state", state, "error", err)
	}
}

// runBeside runs the process while work does, and stops it after that. When the process ends first, so
// does work's context.
func (p *process) runBeside(ctx context.Context, work func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		defer cancel()
		ended <- p.run(ctx, nil)
	}()
	err := work(ctx)
	cancel()
	return errors.Join(<-ended, err)
}

// close ends everything; the pipelines have returned by then.
func (p *process) close() {
	if p.server != nil {
		_ = p.server.Close() // it has been closed already if it ever ran
	}
	p.disconnect()
	_ = p.events.flush() // there is nowhere left to say it
}

// disconnect ends what open opened.
func (p *process) disconnect() {
	if p.store != nil {
		if err := p.store.Close(); err != nil {
			p.log.Error("close the store", "error", err)
		}
	}
	if p.admin != nil {
		p.admin.Close()
	}
	p.closeTracing()
	p.store, p.admin, p.tracing = nil, nil, nil
}
