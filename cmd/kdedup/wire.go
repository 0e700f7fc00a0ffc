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
	tracing   *tracing.Provider      // nil: no traces
	active    atomic.Pointer[active] // replaced by run alone
}

// config is the configuration in force. A reload changes only its topics and what is in applied.
func (p *process) config() config.Config { return p.active.Load().config }

// wire connects everything and checks it, but starts no pipeline. What it opened before an error is
// closed again.
func wire(ctx context.Context, c config.Config, log *slog.Logger, level *slog.LevelVar) (*process, error) {
	events := newEventLog(log.Handler())
	p := &process{log: slog.New(events), level: level, events: events, registry: newRegistry()}
	p.active.Store(&active{config: c})
	p.families = newFamilies(p.registry, c)
	if err := p.open(ctx, c); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *process) open(ctx context.Context, c config.Config) (err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
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
	if p.store, err = openStore(ctx, c.Store, p.registry, p.log); err != nil {
		return err
	}
	if err := checkRights(ctx, p.store); err != nil {
		return err
	}
	p.store = p.families.dedup.Observed(p.store)
	if p.tracing, err = openTracing(ctx, c, p.families.tracing, p.log); err != nil {
		return err
	}
	if err := p.register(ctx, entries); err != nil {
		return err
	}
	p.activate(c, nil, entries)
	p.server, err = server.New(p.serverOptions())
	return err
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
	for _, r := range p.active.Load().pipelines {
		r.begin(ctx, cancel)
	}
	notifySystemd(p.log, daemon.SdNotifyReady)
	if file != nil {
		p.follow(ctx, cancel, file)
	}
	<-ctx.Done()
	notifySystemd(p.log, daemon.SdNotifyStopping)
	err := p.active.Load().wait()
	stopServing() // metrics stay readable while the last batches end
	return errors.Join(err, <-ended)
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

// close ends what wire opened; the pipelines have returned by then.
func (p *process) close() {
	if p.server != nil {
		_ = p.server.Close() // it has been closed already if it ever ran
	}
	if p.store != nil {
		if err := p.store.Close(); err != nil {
			p.log.Error("close the store", "error", err)
		}
	}
	if p.admin != nil {
		p.admin.Close()
	}
	p.closeTracing()
	_ = p.events.flush() // there is nowhere left to say it
}
