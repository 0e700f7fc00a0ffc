package storetest

import (
	"context"
	"sync/atomic"

	"github.com/kdedup/kdedup/dedup"
)

// InTurn stands for several processes that share their claims: each call goes to the next of the
// stores, which are of one type. Whoever opened them closes them.
func InTurn(stores ...dedup.Store) dedup.Store { return &turns{all: stores} }

type turns struct {
	all  []dedup.Store
	next atomic.Uint32
}

func (p *turns) one() dedup.Store { return p.all[int(p.next.Add(1))%len(p.all)] }

func (p *turns) Register(ctx context.Context, s dedup.Scope) error {
	return p.one().Register(ctx, s)
}

func (p *turns) Registered(ctx context.Context, s dedup.Scope) (dedup.Scope, bool, error) {
	return p.one().Registered(ctx, s)
}

func (p *turns) Claim(ctx context.Context, s dedup.Scope, c []dedup.Claim) ([]dedup.Answer, error) {
	return p.one().Claim(ctx, s, c)
}

func (p *turns) Lookup(ctx context.Context, s dedup.Scope, id dedup.ID) (dedup.Answer, error) {
	return p.one().Lookup(ctx, s, id)
}

func (p *turns) Release(ctx context.Context, s dedup.Scope, id dedup.ID) error {
	return p.one().Release(ctx, s, id)
}

func (p *turns) Forget(ctx context.Context, s dedup.Scope) error { return p.one().Forget(ctx, s) }

func (p *turns) mover() dedup.Mover { return p.one().(dedup.Mover) }

func (p *turns) Export(
	ctx context.Context, s dedup.Scope, page func([]dedup.Standing) error,
) error {
	return p.mover().Export(ctx, s, page)
}

func (p *turns) Find(
	ctx context.Context, s dedup.Scope, ids []dedup.ID,
) ([]dedup.Standing, error) {
	return p.mover().Find(ctx, s, ids)
}

func (p *turns) Import(
	ctx context.Context, s dedup.Scope, c []dedup.Standing,
) ([]dedup.Answer, error) {
	return p.mover().Import(ctx, s, c)
}

func (p *turns) Close() error { return nil }
