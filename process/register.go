package process

import (
	"context"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/consumer/client"
	"github.com/kdedup/kdedup/dedup"
)

// register leaves the entries' marks in the store and the group: the settings of their scopes, and
// where start: latest begins. All scopes are compared before the first is registered, so that one
// that is refused leaves nothing of the others behind.
func (p *running) register(ctx context.Context, entries []connect.Entry) error {
	k := p.knowledge
	if err := connect.Each(entries, func(e *connect.Entry) error {
		e.Schemas = p.schemas
		if err := e.Compare(ctx, p.store); err != nil {
			return err
		}
		if e.KeepsEarlier {
			p.log.Warn(e.Earlier(), "topic", e.Input)
		}
		return k.Check(ctx, p.clusters, e)
	}); err != nil {
		return err
	}
	return connect.Each(entries, func(e *connect.Entry) error { return p.registerOne(ctx, e) })
}

func (p *running) registerOne(ctx context.Context, e *connect.Entry) error {
	if err := e.Register(ctx, p.store); err != nil {
		return err
	}
	if err := p.knowledge.Note(ctx, e); err != nil {
		return err
	}
	identity, err := dedup.Identify(ctx, p.store, e.ClaimScope())
	if err != nil {
		return err
	}
	e.Store = identity
	if e.Start == config.StartLatest {
		return p.pinStart(ctx, e)
	}
	return nil
}

func (p *running) pinStart(ctx context.Context, e *connect.Entry) error {
	counted := p.families.consumer.For(e.Input)
	group, at := connect.GroupAt(p.clusters, e.Topic)
	return group.PinStart(ctx, at, client.Start{Ends: e.Ends,
		Skips: func(partition int32, from, to int64) {
			counted.Skipped(partition, from, to)
			p.log.Info("start: latest: what came before the first start is not read",
				"topic", e.Input, "partition", partition, "from", from, "to", to)
		}})
}
