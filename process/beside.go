package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/api"
	"github.com/kdedup/kdedup/internal/certs"
	"github.com/kdedup/kdedup/internal/pause"
	"github.com/kdedup/kdedup/process/server"
)

// The API beside the pipelines asks the same store. Neither stops the other: what fails there is
// tried again, and what fails here leaves the store open for it.

// openedStore is a store with the metrics that it registered.
type openedStore struct {
	store   dedup.Store
	metrics *prometheus.Registry
	counted bool // in the registry of the process
}

// beside is the API of a process that runs pipelines.
type beside struct {
	store   atomic.Pointer[openedStore] // that it asks; nil until one is open
	opened  chan struct{}               // closed when there is one
	once    sync.Once
	waiting atomic.Pointer[notStarted] // nil while it answers
	metrics *api.Metrics
	address atomic.Pointer[string] // that it answers at, or did last
}

func (b *beside) url() string {
	if url := b.address.Load(); url != nil {
		return *url
	}
	return ""
}

// begin registers its metrics, if there is an API.
func (b *beside) begin(reg prometheus.Registerer, serves bool) {
	b.opened = make(chan struct{})
	b.waiting.Store(&notStarted{errors.New("connecting to the store")})
	if serves {
		b.metrics = api.NewMetrics(reg)
	}
}

// uses reports whether the store must stay open for the API.
func (b *beside) uses(o *openedStore) bool { return b.store.Load() == o }

// serves reports whether the process answers an API.
func (p *Process) serves() bool {
	file := p.active.Load().file
	return len(file.API.Scopes) > 0 && !keepsOnly(file)
}

// openStore opens the store unless it is open. Whatever fails later, it stays open for the API.
func (p *Process) openStore(ctx context.Context, c config.Config) error {
	if p.opened != nil {
		return nil
	}
	o := &openedStore{metrics: prometheus.NewRegistry()}
	var err error
	if o.store, err = connect.OpenSharedStore(ctx, c, o.metrics, p.log); err != nil {
		return err
	}
	if err := connect.CheckRights(ctx, o.store); err != nil {
		return errors.Join(err, o.store.Close())
	}
	p.opened = o
	if p.serves() {
		if err := p.countStore(); err != nil {
			return err
		}
		p.beside.store.Store(o)
		p.beside.once.Do(func() { close(p.beside.opened) })
	}
	return nil
}

// countStore shows the metrics of the store among those of the process.
func (p *Process) countStore() error {
	if p.opened.counted {
		return nil
	}
	if err := p.registry.Register(p.opened.metrics); err != nil {
		return fmt.Errorf("register the store's metrics: %w", err)
	}
	p.opened.counted = true
	return nil
}

// closeStore closes it unless somebody uses it.
func (p *Process) closeStore(uses func(*openedStore) bool) {
	if p.opened == nil || uses != nil && uses(p.opened) {
		return
	}
	if err := p.opened.store.Close(); err != nil {
		p.log.Error("close the store", "error", err)
	}
	p.opened = nil
}

// serveBeside answers the API until ctx ends, or end is called, which waits for that.
func (p *Process) serveBeside(ctx context.Context) (end func()) {
	if !p.serves() {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var serving sync.WaitGroup
	serving.Go(func() { p.serve(ctx) })
	return func() {
		cancel()
		serving.Wait()
	}
}

// serve begins the API again, with pauses, when it fails.
func (p *Process) serve(ctx context.Context) {
	select {
	case <-p.beside.opened:
	case <-ctx.Done():
		return
	}
	c, store := p.active.Load().file, p.beside.store.Load().store
	for wait := firstStartPause; ctx.Err() == nil; wait = min(2*wait, longStartPause) {
		began := time.Now()
		err := connect.RegisterAPIScopes(ctx, store, c.API.Scopes) // it waits for a claim log
		if err == nil {
			tracer := apiTracer(p.tracing)
			err = answer(ctx, c, store, p.log, p.beside.metrics, tracer, func(url string) {
				p.beside.address.Store(&url)
				p.beside.waiting.Store(nil)
				p.log.Info("the api answers", "url", url)
			})
		}
		if ctx.Err() != nil {
			if err != nil {
				p.log.Warn("the api did not end well", "error", err)
			}
			return
		}
		if time.Since(began) > longStartPause {
			wait = firstStartPause
		}
		p.beside.waiting.Store(&notStarted{err})
		p.log.Error("the api does not answer, the pipelines go on: trying again", "error", err,
			"pause", wait)
		pause.For(ctx, wait)
	}
}

// check is what /readyz asks of the API.
func (p *Process) checkAPI(ctx context.Context) error {
	if waiting := p.beside.waiting.Load(); waiting != nil {
		return waiting.why
	}
	return connect.APIReady(ctx, p.beside.store.Load().store, p.active.Load().file.API.Scopes)
}

// apiCheck names it.
func (p *Process) apiCheck() server.Check { return server.Check{Name: "api", Func: p.checkAPI} }

// answer serves the API of a configuration until ctx ends, from a store in which its scopes are
// registered.
func answer(
	ctx context.Context, c config.Config, store dedup.Store, log *slog.Logger,
	metrics *api.Metrics, tracer api.Tracer, begun func(url string),
) (err error) {
	a := c.API
	keys, closeKeys, err := connect.OpenAPIKeys(ctx, c, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeKeys()) }()
	served, err := api.New(api.Options{
		Listen: a.Listen, TLS: certs.ServerFiles(a.TLS), Callers: connect.APICallers(a),
		Scopes: connect.APIScopes(a), Store: store, Keys: keys, Kinds: connect.APIKinds(c),
		Ready: func(ctx context.Context) error { return connect.APIReady(ctx, store, a.Scopes) },
		Limits: api.Limits{Bytes: int(a.MaxBytes), Batch: a.MaxBatch, Requests: a.MaxRequests,
			Wait: a.MaxWait},
		Metrics: metrics, Tracer: tracer, Logger: log,
	})
	if err != nil {
		return err
	}
	metrics.Answers(true)
	defer metrics.Answers(false)
	begun(served.URL())
	return served.Run(ctx)
}
