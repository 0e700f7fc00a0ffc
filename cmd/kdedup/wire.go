package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/kafka"
	"github.com/kdedup/kdedup/pipeline"
	"github.com/kdedup/kdedup/server"
)

// startTimeout bounds every command's talk with the servers before the work begins.
const startTimeout = 60 * time.Second

// process is everything that one kdedup process runs.
type process struct {
	config    config.Config
	log       *slog.Logger
	events    *eventLog // the last warnings and errors of log
	registry  *prometheus.Registry
	families  families
	server    *server.Server
	admin     *kgo.Client
	store     dedup.Store
	pipelines []*pipeline.Pipeline
}

// wire connects everything and checks it, but starts no pipeline. What it opened before an error is
// closed again.
func wire(ctx context.Context, c config.Config, log *slog.Logger) (*process, error) {
	events := newEventLog(log.Handler())
	p := &process{config: c, log: slog.New(events), events: events, registry: newRegistry()}
	p.families = newFamilies(p.registry, c)
	if err := p.open(ctx); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *process) open(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if p.admin, err = adminClient(p.config, p.log); err != nil {
		return err
	}
	if err := checkTopics(ctx, p.admin, p.config.Topics); err != nil {
		return err
	}
	if p.store, err = openStore(ctx, p.config.Store, p.registry, p.log); err != nil {
		return err
	}
	p.store = p.families.dedup.Observed(p.store)
	for i, t := range p.config.Topics {
		pipe, err := p.pipeline(ctx, t)
		if err != nil {
			return fmt.Errorf("topics[%d]: %w", i, err)
		}
		p.pipelines = append(p.pipelines, pipe)
	}
	p.server, err = server.New(p.serverOptions())
	return err
}

// adminClient is a client that joins no group.
func adminClient(c config.Config, log *slog.Logger, more ...kgo.Opt) (*kgo.Client, error) {
	opts, err := kafka.Connection(c.Kafka, "kdedup-"+c.Instance, nil, log)
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(append(opts, more...)...)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	return client, nil
}

// checkTopics asks the brokers and joins every problem.
func checkTopics(ctx context.Context, client *kgo.Client, topics []config.Topic) error {
	if err := client.Ping(ctx); err != nil {
		return fmt.Errorf("kafka.brokers: %w", err)
	}
	var problems []error
	for i, t := range topics {
		for _, err := range kafka.Check(ctx, client, t) {
			problems = append(problems, fmt.Errorf("topics[%d]: %w", i, err))
		}
	}
	return errors.Join(problems...)
}

// checks are what /readyz asks.
func (p *process) checks() []server.Check {
	scope := scopeOf(p.config.Topics[0], "")
	checks := []server.Check{{Name: "store", Func: func(ctx context.Context) error {
		_, err := p.store.Lookup(ctx, scope, "readiness probe")
		return err
	}}}
	for i, pipe := range p.pipelines {
		checks = append(checks, server.Check{
			Name: "topic " + p.config.Topics[i].Input,
			Func: func(context.Context) error { return pipe.Ready() },
		})
	}
	return checks
}

// run works until ctx ends or a pipeline cannot go on; then all the others stop too.
func (p *process) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	var (
		wg    sync.WaitGroup
		errs  = make([]error, len(p.pipelines))
		ended = make(chan error, 1)
	)
	go func() { ended <- p.server.Run(serving) }()
	p.log.Info("serving metrics", "address", p.server.Addr())
	for i, pipe := range p.pipelines {
		wg.Go(func() {
			defer cancel()
			errs[i] = pipe.Run(ctx)
		})
	}
	wg.Wait()
	stopServing() // metrics stay readable while the last batches end
	return errors.Join(append(errs, <-ended)...)
}

// runBeside runs the process while work does, and stops it after that. When the process ends first, so
// does work's context.
func (p *process) runBeside(ctx context.Context, work func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		defer cancel()
		ended <- p.run(ctx)
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
}
