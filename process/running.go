package process

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/consumer/client"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid/registry"
)

// running is a process with all that it connects at its start. It is whole when others see it, and
// nothing of it is replaced later.
type running struct {
	*Process
	*clients
	store     dedup.Store // observed
	schemas   *registry.Client
	knowledge connect.Knowledge
}

// clients are those of Kafka that all lanes share.
type clients struct {
	connector *kafka.Connector
	forwards  *kafka.Connector // to what is forwarded to; mostly it is connector
	clusters  kafka.Clusters
	takesOver *kgo.Client // see client.Options
}

// connect makes them. They stay when open has failed: a broker that admits few new connections a
// second would have to admit them again.
func (p *Process) connect(ctx context.Context, file config.Config) (*clients, error) {
	if p.clients != nil {
		return p.clients, nil
	}
	var c clients
	var err error
	if c.connector, err = kafka.NewConnector(ctx, file.Kafka, p.log); err != nil {
		return nil, err
	}
	if c.forwards, err = kafka.NewOutputConnector(ctx, file.Kafka, c.connector,
		p.log); err != nil {
		return nil, err
	}
	if c.takesOver, err = connect.NewClient(c.forwards, file, p.log,
		client.TakingOver()); err != nil {
		return nil, err
	}
	c.clusters, err = connect.NewClients(c.connector, c.forwards, file, p.log,
		append(client.Writes(), connect.SeesNewTopics)...)
	if err != nil {
		c.takesOver.Close()
		return nil, err
	}
	p.clients = &c
	return p.clients, nil
}

func (c *clients) close() {
	c.clusters.Close()
	c.takesOver.Close()
}

// open connects everything and checks it. What it opened before an error is closed again, and it
// may be called again.
func (p *Process) open(ctx context.Context, file config.Config) (err error) {
	whole := ctx // for the topics of patterns, of which each has its time
	ctx, cancel := context.WithTimeout(ctx, connect.StartTimeout)
	defer cancel()
	r := &running{Process: p}
	defer func() {
		if err != nil {
			r.close()
			return
		}
		p.running.Store(r)
		p.families.started.Set(1)
	}()
	if keepsOnly(file) {
		return r.openKeeping(ctx, file)
	}
	if p.serves() && !file.Store.Logs() { // the API needs no broker for it
		if err := p.openStore(ctx, file); err != nil {
			return err
		}
	}
	if r.clients, err = p.connect(ctx, file); err != nil {
		return err
	}
	c, err := r.expand(ctx, file)
	if err != nil {
		return err
	}
	entries, matched := named(connect.Entries(c.Topics))
	entries, refusal := p.admit(ctx, entries, func(some []connect.Entry) error {
		return r.checkNamed(ctx, c, some)
	})
	if refusal != nil && (len(matched) == 0 || !errors.As(refusal, new(noneAdmitted))) {
		return refusal
	}
	r.tellSettings(ctx, entries)
	r.tellNamesakes(ctx, entries)
	if r.schemas, err = connect.Schemas(c, p.log); err != nil {
		return err
	}
	if err := p.openStore(ctx, c); err != nil {
		return err
	}
	r.store = p.families.claims.Observed(p.opened.store)
	r.knowledge, err = connect.NewKnowledge(ctx, r.clusters.Input, r.store, c.Store)
	if err != nil {
		return err
	}
	p.log.Info("the store is open", "store", connect.StoreInUse(c))
	if len(entries) > 0 {
		entries, err = p.admit(ctx, entries, func(some []connect.Entry) error {
			return r.register(ctx, some)
		})
		if refusal = errors.Join(refusal, err); err != nil &&
			(len(matched) == 0 || !errors.As(err, new(noneAdmitted))) {
			return err
		}
	}
	if matched, err = r.prepareMatched(whole, file, c, matched); err != nil {
		return err
	}
	if refusal != nil && len(entries)+len(matched) == 0 {
		return refusal
	}
	if err := p.countStore(); err != nil {
		return err
	}
	p.accept(entries)
	r.activate(file, c, nil, append(entries, matched...))
	p.families.config.Loaded(ConfigHash(file), p.active.Load().since)
	return nil
}

// close ends what open opened, but for the clients, and the store if the API uses it.
func (p *running) close() {
	p.closeStore(p.beside.uses)
	if p.schemas != nil {
		p.schemas.Close()
	}
}
