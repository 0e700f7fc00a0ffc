package connect

import (
	"context"
	"fmt"
	"time"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/api"
)

// APIScope is where the claims of a scope of the API are.
func APIScope(s config.APIScope) dedup.Scope {
	return dedup.Scope{ConsumerGroup: s.Group, Name: s.Name, TTL: s.TTL, Buckets: s.Buckets,
		Extractor: api.ExtractorName}
}

// APIScopes finds them by name.
func APIScopes(c config.API) api.Scopes {
	known := make(map[string]dedup.Scope, len(c.Scopes))
	for _, s := range c.Scopes {
		known[s.Name] = APIScope(s)
	}
	return func(name string) (dedup.Scope, bool) {
		scope, exists := known[name]
		return scope, exists
	}
}

// APICallers are those whom the API knows.
func APICallers(c config.API) (callers []api.Caller) {
	for _, k := range c.Callers {
		callers = append(callers, api.Caller{Name: k.Name, Token: k.Token.Reveal(),
			Certificate: k.Certificate, Scopes: k.Scopes})
	}
	return callers
}

// APIKinds name the stores of the API by their types.
func APIKinds(c config.Config) api.Kinds {
	kinds := api.Kinds{Claims: c.Store.Type, Keys: c.API.Keys.Type}
	if kinds.Keys == config.KeysInStore {
		kinds.Keys = c.Store.Type
	}
	return kinds
}

// RegisterAPIScopes makes the scopes ready for claims. It refuses those whose claims are not there.
func RegisterAPIScopes(ctx context.Context, store dedup.Store, scopes []config.APIScope) error {
	for i, s := range scopes {
		if err := registerAPIScope(ctx, store, APIScope(s)); err != nil {
			return fmt.Errorf("api.scopes[%d]: %w", i, err)
		}
	}
	return nil
}

func registerAPIScope(ctx context.Context, store dedup.Store, scope dedup.Scope) error {
	if err := CheckMoved(ctx, store, scope); err != nil {
		return err
	}
	if err := store.Register(ctx, scope); err != nil {
		return err
	}
	if err := WaitReady(ctx, store, scope); err != nil {
		return err
	}
	return dedup.Lost(ctx, store, scope, time.Time{})
}

// APIReady says why claims in the scopes cannot be decided now.
func APIReady(ctx context.Context, store dedup.Store, scopes []config.APIScope) error {
	if err := CheckReady(store); err != nil {
		return err
	}
	_, err := store.Lookup(ctx, APIScope(scopes[0]), "readiness probe")
	return err
}
