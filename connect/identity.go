package connect

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/fence"
)

// Knowledge is what tells whether a store has the claims of what a consumer group has handled, on
// this cluster.
type Knowledge struct {
	store   dedup.Store
	Name    string // of the store, for errors
	cluster string // its ID; empty where the brokers tell none
	config  config.Store
}

// errUnknowing says that the store lacks the claims.
var errUnknowing = errors.New(
	"the store knows nothing of what this consumer group has handled: copies of it would pass")

// NewKnowledge asks the brokers for the cluster's ID.
func NewKnowledge(
	ctx context.Context, client *kgo.Client, store dedup.Store, c config.Store,
) (Knowledge, error) {
	meta, err := kadm.NewClient(client).BrokerMetadata(ctx)
	if err != nil {
		return Knowledge{}, fmt.Errorf("ask for the cluster's ID: %w", err)
	}
	return Knowledge{store, StoreName(c), meta.Cluster, c}, nil
}

// StoreName says where the store is, with absolute paths.
func StoreName(c config.Store) string {
	switch c.Type {
	case config.StoreCassandra:
		if c.Logs() {
			return "store.cassandra.log.table " + c.Cassandra.Keyspace + "." + c.Cassandra.Log.Table
		}
		return "store.cassandra.keyspace " + c.Cassandra.Keyspace
	case config.StoreRedis:
		return "store.redis.key_prefix " + c.Redis.KeyPrefix
	case config.StorePostgres:
		return "store.postgres.schema " + c.Postgres.Schema
	case config.StoreKafka:
		return "store.kafka.topic " + c.Kafka.Topic
	}
	path, err := filepath.Abs(c.Embedded.Path)
	if err != nil {
		path = c.Embedded.Path
	}
	return "store.embedded.path " + path
}

// StoreInUse is StoreName that names the topics of a claim log, of which the configuration has one
// for each consumer group.
func StoreInUse(c config.Config) string {
	if topics := ClaimTopics(c); len(topics) > 0 {
		return "topics " + someOf(topics, 4)
	}
	return StoreName(c.Store)
}

// Check changes nothing.
func (k Knowledge) Check(ctx context.Context, clusters kafka.Clusters, e *Entry) error {
	if err := k.checkCluster(ctx, e); err != nil {
		return err
	}
	if err := CheckMoved(ctx, k.store, e.ClaimScope()); err != nil {
		return err
	}
	if err := k.checkLayout(ctx, e); err != nil {
		return err
	}
	strange, settled, err := k.strangeFences(ctx, clusters, e)
	if err != nil {
		return err
	}
	for _, f := range strange {
		return k.unknowing(f)
	}
	err = dedup.Lost(ctx, k.store, e.ClaimScope(), settled)
	if err != nil || e.OnSkip == config.ActionAccept {
		return err
	}
	return k.checkEarlierMarks(ctx, clusters, e)
}

// checkEarlierMarks refuses offsets with marks that name no place, as earlier versions made them,
// where nothing tells that those versions were at work here: neither fences nor the store, in which
// each start notes the cluster. Partitions without a record since an earlier version pinned or
// adopted them have no fence, and are as they should be. Brokers that tell no ID cannot be told
// apart.
func (k Knowledge) checkEarlierMarks(
	ctx context.Context, clusters kafka.Clusters, e *Entry,
) error {
	noted, found, err := dedup.ClusterOf(ctx, k.store, e.ClaimScope(), e.Input)
	if err != nil || k.cluster == "" || found && noted == k.cluster {
		return err
	}
	group, client := GroupAt(clusters, e.Topic)
	return group.CheckEarlier(ctx, client)
}

func (k Knowledge) unknowing(f fence.Fence) error {
	return fmt.Errorf("%w (%s; the fence, up to offset %d, was written with another store). Name "+
		"the store that was used before; "+
		"if it is lost, claim what is on the clean topic with kdedup backfill --force, and run: "+
		"kdedup setup -c FILE --accept-empty-store",
		errUnknowing, k.Name, f.Next())
}

// strangeFences are those that build on claims that the store does not have. The others settle its
// claims up to a time.
func (k Knowledge) strangeFences(
	ctx context.Context, clusters kafka.Clusters, e *Entry,
) (strange []fence.Fence, settled time.Time, err error) {
	group, client := GroupAt(clusters, e.Topic)
	found, err := group.Fences(ctx, client)
	if err != nil {
		return nil, settled, err
	}
	identity, identified, err := dedup.IdentityOf(ctx, k.store, e.ClaimScope())
	if err != nil {
		return nil, settled, err
	}
	_, registered, err := k.store.Registered(ctx, e.ClaimScope())
	if err != nil {
		return nil, settled, err
	}
	for p, f := range found.Fences {
		// fences of earlier versions name none
		known := f.Store == identity || f.Store == "" && (identified || registered)
		if known && f.Claimed().After(settled) {
			settled = f.Claimed()
		}
		if known || f.Foreign(found.Input) {
			continue
		}
		if err := k.CheckFence(ctx, *e, p, f); errors.Is(err, errUnknowing) {
			strange = append(strange, f)
		} else if err != nil {
			return nil, settled, err
		}
	}
	return strange, settled, nil
}

// CheckFence is asked about the fence of another store.
func (k Knowledge) CheckFence(
	ctx context.Context, e Entry, partition int32, f fence.Fence,
) error {
	if f.Claimed().Before(time.Now().Add(-e.TTL)) {
		return nil // all that it builds on has ended
	}
	if f.Store != "" {
		stands, err := dedup.StandsFor(ctx, k.store, e.ClaimScope(), f.Store)
		if err != nil || stands {
			return err
		}
		if moved, err := k.movedUpTo(ctx, e, partition, f); err != nil || moved {
			return err
		}
	}
	return k.unknowing(f)
}

// Knows reports whether the store has the claims that a fence builds on.
func (k Knowledge) Knows(
	ctx context.Context, e *Entry, partition int32, f fence.Fence,
) (bool, error) {
	identity, found, err := dedup.IdentityOf(ctx, k.store, e.ClaimScope())
	if err != nil || found && identity == f.Store {
		return found, err
	}
	err = k.CheckFence(ctx, *e, partition, f)
	if errors.Is(err, errUnknowing) {
		return false, nil
	}
	return err == nil, err
}

// SameCluster reports whether both are on one Kafka cluster, as far as the brokers tell.
func (k Knowledge) SameCluster(o Knowledge) bool {
	return k.cluster == "" || o.cluster == "" || k.cluster == o.cluster
}

// CopyCluster notes in another store whose input the claims of an entry's scope are of, for the
// scope to which they are moved.
func (k Knowledge) CopyCluster(
	ctx context.Context, e *Entry, to Knowledge, scope dedup.Scope,
) error {
	noted, found, err := dedup.ClusterOf(ctx, k.store, e.ClaimScope(), e.Input)
	if err != nil || !found {
		return err
	}
	if _, err := dedup.NoteCluster(ctx, to.store, scope, e.Input, noted); err != nil {
		return err
	}
	shared, err := dedup.SharedWith(ctx, k.store, e.ClaimScope(), e.Input, k.cluster)
	if err != nil || !shared {
		return err
	}
	return dedup.ShareWith(ctx, to.store, scope, e.Input, k.cluster)
}

// checkCluster refuses the input of another cluster than the one whose records have the claims.
func (k Knowledge) checkCluster(ctx context.Context, e *Entry) error {
	noted, found, err := dedup.ClusterOf(ctx, k.store, e.ClaimScope(), e.Input)
	if err != nil || !found || k.cluster == "" || noted == k.cluster {
		return err
	}
	if shared, err := dedup.SharedWith(
		ctx, k.store, e.ClaimScope(), e.Input, k.cluster,
	); err != nil || shared {
		return err
	}
	return fmt.Errorf("scope %s/%s has the claims of %s on the Kafka cluster %s, and this is %s: "+
		"records that were mirrored would be duplicates of "+
		"their originals. To go on with a mirror, name another scope, claim what is on its clean "+
		"topic with kdedup backfill, and start; "+
		"docs/rollout.md has the steps. If both clusters are to share the claims: kdedup setup "+
		"-c FILE --share-with-cluster",
		e.ScopeGroup, e.Scope, e.Input, noted, k.cluster)
}

// Began reports whether the scopes of a pattern, of which this is one, have begun before.
func (k Knowledge) Began(ctx context.Context, scope dedup.Scope, pattern string) (bool, error) {
	return dedup.Began(ctx, k.store, scope, k.began(pattern))
}

// NoteBegan notes that the scopes of a pattern have begun.
func (k Knowledge) NoteBegan(ctx context.Context, scopes []dedup.Scope, pattern string) error {
	for _, scope := range scopes {
		if err := dedup.NoteBegan(ctx, k.store, scope, k.began(pattern)); err != nil {
			return err
		}
	}
	return nil
}

// began has the cluster: on another one the topics are others.
func (k Knowledge) began(pattern string) string { return k.cluster + " " + pattern }

// Note leaves the store's identity and the cluster's in the store, where they are not yet.
func (k Knowledge) Note(ctx context.Context, e *Entry) error {
	if k.cluster == "" {
		return nil
	}
	_, err := dedup.NoteCluster(ctx, k.store, e.ClaimScope(), e.Input, k.cluster)
	return err
}
