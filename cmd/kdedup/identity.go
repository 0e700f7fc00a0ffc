package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/fence"
)

// knowledge is what tells whether a store has the claims of what a consumer group has handled, on this cluster.
type knowledge struct {
	store   dedup.Store
	name    string // of the store, for errors
	cluster string // its ID; empty where the brokers tell none
}

// errUnknowing says that the store lacks the claims.
var errUnknowing = errors.New("the store knows nothing of what this consumer group has handled: copies of it would pass")

func newKnowledge(ctx context.Context, client *kgo.Client, store dedup.Store, c config.Store) (knowledge, error) {
	meta, err := kadm.NewClient(client).BrokerMetadata(ctx)
	if err != nil {
		return knowledge{}, fmt.Errorf("ask for the cluster's ID: %w", err)
	}
	return knowledge{store, storeName(c), meta.Cluster}, nil
}

// storeName says where the store is, with absolute paths.
func storeName(c config.Store) string {
	switch c.Type {
	case config.StoreCassandra:
		return "store.cassandra.keyspace " + c.Cassandra.Keyspace
	case config.StoreRedis:
		return "store.redis.key_prefix " + c.Redis.KeyPrefix
	case config.StorePostgres:
		return "store.postgres.schema " + c.Postgres.Schema
	}
	path, err := filepath.Abs(c.Embedded.Path)
	if err != nil {
		path = c.Embedded.Path
	}
	return "store.embedded.path " + path
}

// check changes nothing.
func (k knowledge) check(ctx context.Context, client *kgo.Client, e *entry) error {
	if err := k.checkCluster(ctx, e); err != nil {
		return err
	}
	strange, err := k.strangeFences(ctx, client, e)
	for _, f := range strange {
		return k.unknowing(f)
	}
	return err
}

func (k knowledge) unknowing(f fence.Fence) error {
	return fmt.Errorf("%w (%s; the fence, up to offset %d, was written with another store). Name the store that was used before; "+
		"if it is lost, claim what is on the clean topic with kdedup backfill --force, and run: kdedup setup -c FILE --accept-empty-store",
		errUnknowing, k.name, f.Next())
}

// strangeFences are those that build on claims that the store does not have.
func (k knowledge) strangeFences(ctx context.Context, client *kgo.Client, e *entry) (strange []fence.Fence, err error) {
	found, err := groupOf(e.Topic).Fences(ctx, client)
	if err != nil {
		return nil, err
	}
	identity, identified, err := dedup.IdentityOf(ctx, k.store)
	if err != nil {
		return nil, err
	}
	_, registered, err := k.store.Registered(ctx, e.scope())
	if err != nil {
		return nil, err
	}
	for _, f := range found.Fences {
		known := f.Store == identity || f.Store == "" && (identified || registered) // fences of earlier versions name none
		if known || f.Foreign(found.Input) {
			continue
		}
		if err := k.checkFence(ctx, *e, f); errors.Is(err, errUnknowing) {
			strange = append(strange, f)
		} else if err != nil {
			return nil, err
		}
	}
	return strange, nil
}

// checkFence is asked about the fence of another store.
func (k knowledge) checkFence(ctx context.Context, e entry, f fence.Fence) error {
	if f.Claimed().Before(time.Now().Add(-e.TTL)) {
		return nil // all that it builds on has ended
	}
	if f.Store != "" {
		if stands, err := dedup.StandsFor(ctx, k.store, f.Store); err != nil || stands {
			return err
		}
	}
	return k.unknowing(f)
}

// checkCluster refuses the input of another cluster than the one whose records have the claims.
func (k knowledge) checkCluster(ctx context.Context, e *entry) error {
	noted, found, err := dedup.ClusterOf(ctx, k.store, e.scope(), e.Input)
	if err != nil || !found || k.cluster == "" || noted == k.cluster {
		return err
	}
	if shared, err := dedup.SharedWith(ctx, k.store, e.scope(), e.Input, k.cluster); err != nil || shared {
		return err
	}
	return fmt.Errorf("scope %s/%s has the claims of %s on the Kafka cluster %s, and this is %s: records that were mirrored would be duplicates of "+
		"their originals. To go on with a mirror, name another scope, claim what is on its clean topic with kdedup backfill, and start; "+
		"docs/rollout.md has the steps. If both clusters are to share the claims: kdedup setup -c FILE --share-with-cluster",
		e.ScopeGroup, e.Scope, e.Input, noted, k.cluster)
}

// note leaves the store's identity and the cluster's in the store, where they are not yet.
func (k knowledge) note(ctx context.Context, e *entry) error {
	if k.cluster == "" {
		return nil
	}
	_, err := dedup.NoteCluster(ctx, k.store, e.scope(), e.Input, k.cluster)
	return err
}

// acceptance is what an operator declares, once.
type acceptance struct{ emptyStore, cluster bool }

// acceptStore declares for all entries what run refuses.
func acceptStore(ctx context.Context, c config.Config, log *slog.Logger, a acceptance, dryRun bool, say func(string)) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	client, err := adminClient(ctx, c, log)
	if err != nil {
		return err
	}
	defer client.Close()
	store, err := openStore(ctx, c.Store, prometheus.NewRegistry(), log)
	if err != nil {
		return err
	}
	defer store.Close()
	k, err := newKnowledge(ctx, client, store, c.Store)
	if err != nil {
		return err
	}
	return each(entriesOf(c.Topics), func(e *entry) error {
		if e.extractor, err = dedup.NewExtractor(sourceOf(e.MessageID)); err != nil {
			return err
		}
		if a.cluster {
			if err := k.shareCluster(ctx, e, dryRun, say); err != nil {
				return err
			}
		}
		if a.emptyStore {
			return k.acceptEmpty(ctx, client, e, dryRun, say)
		}
		return nil
	})
}

func (k knowledge) acceptEmpty(ctx context.Context, client *kgo.Client, e *entry, dryRun bool, say func(string)) error {
	strange, err := k.strangeFences(ctx, client, e)
	if err != nil || len(strange) == 0 {
		return err
	}
	what := fmt.Sprintf("%s in the place of the store of %d fences of %s: copies of what it knew pass", k.name, len(strange), e.Input)
	if dryRun {
		say("would accept " + what)
		return nil
	}
	if _, err := dedup.Identify(ctx, k.store); err != nil {
		return err
	}
	for _, f := range strange {
		if f.Store == "" {
			continue
		}
		if err := dedup.DeclareFor(ctx, k.store, f.Store); err != nil {
			return err
		}
	}
	say("accepted " + what)
	return nil
}

func (k knowledge) shareCluster(ctx context.Context, e *entry, dryRun bool, say func(string)) error {
	if k.checkCluster(ctx, e) == nil {
		return nil
	}
	what := fmt.Sprintf("the claims of scope %s/%s with the Kafka cluster %s", e.ScopeGroup, e.Scope, k.cluster)
	if dryRun {
		say("would share " + what)
		return nil
	}
	if err := dedup.ShareWith(ctx, k.store, e.scope(), e.Input, k.cluster); err != nil {
		return err
	}
	say("shared " + what)
	return nil
}
