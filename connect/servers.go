package connect

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/claimlog"
	"github.com/kdedup/kdedup/dedup/messageid/registry"
)

// Servers are the servers of a configuration, for a command: each is opened at its first use, and
// Close ends them in the opposite order. One goroutine uses them.
type Servers struct {
	config  config.Config
	log     *slog.Logger
	clients []kgo.Opt // of all clients, beside those of an admin

	input, output *kafka.Connector
	clusters      kafka.Clusters
	schemas       *registry.Client
	store         dedup.Store
	closers       []func() error
}

// NewServers opens nothing yet. The options are for the clients that join no group.
func NewServers(c config.Config, log *slog.Logger, clients ...kgo.Opt) *Servers {
	return &Servers{config: c, log: log, clients: clients}
}

// Close ends what was opened.
func (s *Servers) Close() error {
	var problems []error
	for _, end := range slices.Backward(s.closers) {
		problems = append(problems, end())
	}
	s.closers = nil
	return errors.Join(problems...)
}

func (s *Servers) closeLast(end func()) {
	s.closers = append(s.closers, func() error { end(); return nil })
}

func (s *Servers) connect(ctx context.Context) (err error) {
	if s.output != nil {
		return nil
	}
	if s.input, err = kafka.NewConnector(ctx, s.config.Kafka, s.log); err != nil {
		return err
	}
	s.output, err = kafka.NewOutputConnector(ctx, s.config.Kafka, s.input, s.log)
	return err
}

// OutputConnector says how clients reach the cluster of the clean topics.
func (s *Servers) OutputConnector(ctx context.Context) (*kafka.Connector, error) {
	err := s.connect(ctx)
	return s.output, err
}

// InputOptions are those of a client that reads inputs; its work becomes a part of its client ID.
func (s *Servers) InputOptions(ctx context.Context, work string) ([]kgo.Opt, error) {
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	return s.input.AdminOptions("kdedup-"+s.config.Instance+"-"+work, s.log), nil
}

// OutputOptions are InputOptions for the cluster of the clean topics.
func (s *Servers) OutputOptions(ctx context.Context, work string) ([]kgo.Opt, error) {
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	return s.output.AdminOptions("kdedup-"+s.config.Instance+"-"+work, s.log), nil
}

// Clusters have clients that join no group. No broker has been asked anything yet.
func (s *Servers) Clusters(ctx context.Context) (kafka.Clusters, error) {
	if s.clusters.Input != nil {
		return s.clusters, nil
	}
	err := s.connect(ctx)
	if err == nil {
		s.clusters, err = NewClients(s.input, s.output, s.config, s.log, s.clients...)
	}
	if err != nil {
		return kafka.Clusters{}, err
	}
	s.closeLast(s.clusters.Close)
	return s.clusters, nil
}

// Reach is Clusters once a broker of each has answered.
func (s *Servers) Reach(ctx context.Context) (kafka.Clusters, error) {
	clusters, err := s.Clusters(ctx)
	if err != nil {
		return clusters, err
	}
	return clusters, clusters.Ping(ctx)
}

// Schemas are those of the registry and the files of the configuration; without either there are
// none.
func (s *Servers) Schemas() (*registry.Client, error) {
	if s.schemas != nil {
		return s.schemas, nil
	}
	schemas, err := Schemas(s.config, s.log)
	if err != nil {
		return nil, err
	}
	s.schemas = schemas
	s.closeLast(schemas.Close)
	return schemas, nil
}

// Entry is that of a topic, with its extractor.
func (s *Servers) Entry(t config.Topic) (Entry, error) {
	e := Entry{Topic: t}
	err := s.extract(&e)
	return e, err
}

// extract gives an entry what extracts its IDs.
func (s *Servers) extract(e *Entry) error {
	schemas, err := s.Schemas()
	if err != nil {
		return err
	}
	e.Schemas = schemas
	e.Extractor, err = ExtractorOf(e.Topic, schemas)
	return err
}

// Store is the whole store.
func (s *Servers) Store(ctx context.Context) (dedup.Store, error) {
	return s.keep(func() (dedup.Store, error) {
		return OpenStore(ctx, s.config, prometheus.NewRegistry(), s.log)
	})
}

// StoreFor is Store for work on few claims: see OpenStoreFor.
func (s *Servers) StoreFor(ctx context.Context, only claimlog.Only) (dedup.Store, error) {
	return s.keep(func() (dedup.Store, error) { return OpenStoreFor(ctx, s.config, only, s.log) })
}

// StoreToLook is Store for looking alone: see OpenForLooking.
func (s *Servers) StoreToLook(ctx context.Context) (dedup.Store, error) {
	return s.keep(func() (dedup.Store, error) { return OpenForLooking(ctx, s.config, s.log) })
}

// Knowledge is what the store knows of the inputs' cluster. The store has been opened by then.
func (s *Servers) Knowledge(ctx context.Context) (Knowledge, error) {
	clusters, err := s.Clusters(ctx)
	if err != nil {
		return Knowledge{}, err
	}
	return NewKnowledge(ctx, clusters.Input, s.store, s.config.Store)
}

// keep returns the store that is open already, or opens it and closes it at the end.
func (s *Servers) keep(open func() (dedup.Store, error)) (dedup.Store, error) {
	if s.store != nil {
		return s.store, nil
	}
	store, err := open()
	if err != nil {
		return nil, err
	}
	s.store = store
	s.closers = append(s.closers, store.Close)
	return store, nil
}
