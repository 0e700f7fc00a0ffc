package connect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/dedup"
)

// Acceptance is what an operator declares, once.
type Acceptance struct{ EmptyStore, Cluster bool }

// AcceptStore declares for all entries what run refuses.
func AcceptStore(
	ctx context.Context, c config.Config, log *slog.Logger, a Acceptance, dryRun bool,
	say func(string),
) (err error) {
	ctx, cancel := context.WithTimeout(ctx, StartTimeout)
	defer cancel()
	servers := NewServers(c, log)
	defer func() { err = errors.Join(err, servers.Close()) }()
	clusters, err := servers.Clusters(ctx)
	if err != nil {
		return err
	}
	// A claim log is judged without the index that this machine may have: others have none.
	if _, err := servers.StoreFor(ctx, nil); err != nil {
		return err
	}
	k, err := servers.Knowledge(ctx)
	if err != nil {
		return err
	}
	return Each(Entries(c.Topics), func(e *Entry) error {
		if e.Extractor, err = ExtractorOf(e.Topic, nil); err != nil {
			return err
		}
		if a.Cluster {
			if err := k.shareCluster(ctx, e, dryRun, say); err != nil {
				return err
			}
		}
		if a.EmptyStore {
			return k.acceptEmpty(ctx, clusters, e, dryRun, say)
		}
		return nil
	})
}

func (k Knowledge) acceptEmpty(
	ctx context.Context, clusters kafka.Clusters, e *Entry, dryRun bool, say func(string),
) error {
	if err := k.acceptIncomplete(ctx, e, dryRun, say); err != nil {
		return err
	}
	strange, settled, err := k.strangeFences(ctx, clusters, e)
	if err == nil {
		err = k.acceptLoss(ctx, e, settled, dryRun, say)
	}
	if err != nil {
		return err
	}
	layout, err := k.otherLayout(ctx, e)
	if err != nil || len(strange) == 0 && layout == "" {
		return err
	}
	what := fmt.Sprintf(
		"%s in the place of the store of %d fences of %s: copies of what it knew pass", k.Name,
		len(strange), e.Input)
	if dryRun {
		say("would accept " + what)
		return nil
	}
	if _, err := dedup.Identify(ctx, k.store, e.ClaimScope()); err != nil {
		return err
	}
	others := []string{layout}
	for _, f := range strange {
		others = append(others, f.Store)
	}
	for _, other := range others {
		if other == "" {
			continue
		}
		if err := dedup.DeclareFor(ctx, k.store, e.ClaimScope(), other); err != nil {
			return err
		}
	}
	say("accepted " + what)
	return nil
}

// acceptLoss takes a store of which claims were removed that still hold.
func (k Knowledge) acceptLoss(
	ctx context.Context, e *Entry, settled time.Time, dryRun bool, say func(string),
) error {
	lost := dedup.Lost(ctx, k.store, e.ClaimScope(), settled)
	if !errors.Is(lost, dedup.ErrLost) {
		return lost
	}
	what := fmt.Sprintf("%s without claims that are gone: copies of them pass", k.Name)
	if dryRun {
		say("would accept " + what)
		return nil
	}
	if err := dedup.AcceptLoss(ctx, k.store, e.ClaimScope()); err != nil {
		return err
	}
	say("accepted " + what)
	return nil
}

// acceptIncomplete takes a store as it is into which claims were being moved.
func (k Knowledge) acceptIncomplete(
	ctx context.Context, e *Entry, dryRun bool, say func(string),
) error {
	from, incomplete, err := dedup.NotAllHere.Read(ctx, k.store, e.ClaimScope())
	if err != nil || !incomplete {
		return err
	}
	what := fmt.Sprintf("%s without some of the claims of %s: copies of what it lacks pass",
		k.Name, PlaceName(from))
	if dryRun {
		say("would accept " + what)
		return nil
	}
	if err := dedup.NotAllHere.Erase(ctx, k.store, e.ClaimScope()); err != nil {
		return err
	}
	say("accepted " + what)
	return nil
}

func (k Knowledge) shareCluster(
	ctx context.Context, e *Entry, dryRun bool, say func(string),
) error {
	if k.checkCluster(ctx, e) == nil {
		return nil
	}
	what := fmt.Sprintf("the claims of scope %s/%s with the Kafka cluster %s", e.ScopeGroup,
		e.Scope, k.cluster)
	if dryRun {
		say("would share " + what)
		return nil
	}
	if err := dedup.ShareWith(ctx, k.store, e.ClaimScope(), e.Input, k.cluster); err != nil {
		return err
	}
	say("shared " + what)
	return nil
}
