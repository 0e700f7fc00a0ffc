package process

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/embedded"
	"github.com/kdedup/kdedup/internal/api"
	"github.com/kdedup/kdedup/internal/certs"
	"github.com/kdedup/kdedup/internal/pause"
	"github.com/kdedup/kdedup/pipeline/tracing"
	"github.com/kdedup/kdedup/process/server"
)

// Serving is the kdedup that answers the API of a configuration, and runs none of its pipelines.
type Serving struct {
	config   config.Config
	log      *slog.Logger
	events   *eventLog
	registry *prometheus.Registry
	metrics  *api.Metrics
	tracing  *tracing.Provider // nil: no traces
	server   *server.Server
	store    atomic.Pointer[dedup.Store] // nil until it is open
	url      atomic.Pointer[string]      // of the API
	waiting  atomic.Pointer[notStarted]  // nil when the API answers
}

// apiInstance keeps the index of a claim log apart from that of the process that runs the pipelines
// of the same file.
const apiInstance = "-api"

// NewServing makes what needs no other server: the page of operators listens.
func NewServing(c config.Config, log *slog.Logger) (*Serving, error) {
	events := newEventLog(log.Handler())
	if c.Store.Logs() {
		c.Instance += apiInstance
	}
	s := &Serving{config: c, log: slog.New(events), events: events, registry: newRegistry()}
	s.metrics = api.NewMetrics(s.registry)
	s.waiting.Store(&notStarted{errors.New("connecting to the store")})
	var err error
	s.tracing, err = openTracing(c, tracing.NewMetrics(s.registry), s.log)
	if err != nil {
		return nil, err
	}
	s.server, err = server.New(server.Options{
		Listen: c.Server.Listen, Hosts: c.Server.Hosts, Pprof: c.Server.Pprof,
		Auth: server.Auth{Username: c.Server.Auth.Username,
			Password: c.Server.Auth.Password.Reveal()},
		TLS:      certs.ServerFiles(c.Server.TLS),
		Gatherer: s.registry, Checks: s.checks, Source: servingStatus{s}, About: about(c),
		Secrets: c.Secrets(), Logger: s.log,
	})
	if err != nil {
		closeTracing(s.tracing, c, s.log)
		return nil, err
	}
	return s, nil
}

// Registry has the metrics of the process.
func (s *Serving) Registry() *prometheus.Registry { return s.registry }

// Run answers until ctx ends.
func (s *Serving) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.server.Run(ctx) }()
	s.log.Info("the status page answers", "address", s.server.Addr(), "page", s.server.URL())
	notifySystemd(s.log, systemdReady)
	err := s.answer(ctx)
	notifySystemd(s.log, systemdStopping)
	_ = s.events.flush()
	cancel()
	return errors.Join(err, <-ended)
}

// answer opens the store, serves the API and closes the store.
func (s *Serving) answer(ctx context.Context) (err error) {
	store, err := s.openPatiently(ctx)
	if err != nil || store == nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	tracer := apiTracer(s.tracing)
	return answer(ctx, s.config, store, s.log, s.metrics, tracer, func(url string) {
		s.store.Store(&store)
		s.url.Store(&url)
		s.waiting.Store(nil)
		s.log.Info("the api answers", "url", url)
	})
}

// openPatiently tries again while the store does not answer, as a start of the pipelines does. It
// returns nil when ctx ends.
func (s *Serving) openPatiently(ctx context.Context) (dedup.Store, error) {
	began := time.Now()
	for wait := firstStartPause; ctx.Err() == nil; wait = min(2*wait, longStartPause) {
		store, err := s.open(ctx)
		if err == nil {
			return store, nil
		}
		used := errors.Is(err, embedded.ErrUsed) && time.Since(began) < usedPatience
		if !used && !unreachable(err) || ctx.Err() != nil {
			return nil, ignoreEnd(ctx, err)
		}
		s.waiting.Store(&notStarted{err})
		s.log.Warn("the store does not answer: nothing is answered yet, trying again",
			"error", err, "pause", wait)
		pause.For(ctx, wait)
	}
	return nil, nil
}

// ignoreEnd drops what failed because the process ends.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// open connects the store and makes the scopes ready. What it opened before an error is closed.
func (s *Serving) open(ctx context.Context) (dedup.Store, error) {
	opening, cancel := context.WithTimeout(ctx, connect.StartTimeout)
	defer cancel()
	metrics := prometheus.NewRegistry() // of this attempt's store
	store, err := connect.OpenStore(opening, s.config, metrics, s.log)
	if err != nil {
		return nil, err
	}
	err = connect.CheckRights(opening, store)
	if err == nil { // a claim log is read first, however long that takes
		err = connect.RegisterAPIScopes(ctx, store, s.config.API.Scopes)
	}
	if err == nil {
		err = s.registry.Register(metrics)
	}
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}

// checks are what /readyz asks.
func (s *Serving) checks() []server.Check {
	if waiting := s.waiting.Load(); waiting != nil {
		return waiting.checks()
	}
	return []server.Check{{Name: server.StoreCheck, Func: func(ctx context.Context) error {
		return connect.APIReady(ctx, *s.store.Load(), s.config.API.Scopes)
	}}}
}

// Close frees the address of the page if Run never ran, and exports the last spans.
func (s *Serving) Close() {
	_ = s.server.Close()
	closeTracing(s.tracing, s.config, s.log)
	_ = s.events.flush()
}

// servingStatus is what the status page asks. There are no pipelines.
type servingStatus struct{ s *Serving }

var _ server.Source = servingStatus{}

func (v servingStatus) Snapshot() server.Snapshot {
	now := server.Snapshot{Configured: started, Events: v.s.events.latest(),
		Store: server.Store{Type: v.s.config.Store.Type, Blocked: []string{}}}
	url := ""
	if at := v.s.url.Load(); at != nil {
		url = *at
	}
	now.API = apiNow(v.s.config, v.s.metrics.Totals(), url, v.s.waiting.Load())
	if store := v.s.store.Load(); store != nil {
		for _, fact := range dedup.FactsOf(*store) {
			now.Store.Facts = append(now.Store.Facts, server.Fact(fact))
		}
	}
	return now
}

func (v servingStatus) Settings() []server.Setting { return settingsOf(v.s.config) }

func (servingStatus) LookUp(context.Context, string, []byte) (server.Finding, error) {
	return server.Finding{}, errServing
}

func (servingStatus) Change(
	context.Context, server.Change, string, []byte,
) (string, error) {
	return "", errServing
}

var errServing = errors.New("kdedup serve has no topics: ask its api")
