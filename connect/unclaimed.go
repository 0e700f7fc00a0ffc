package connect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/connect/logreader"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/embedded"
	"github.com/kdedup/kdedup/dedup/memory"
)

// OpenForLooking opens the store for callers that only look into it. In the place of an embedded
// store that does not exist it returns an empty one in memory.
func OpenForLooking(ctx context.Context, c config.Config, log *slog.Logger) (dedup.Store, error) {
	if NotMade(c.Store) {
		return memory.New(memory.Options{}), nil
	}
	return OpenStore(ctx, c, prometheus.NewRegistry(), log)
}

// TellUnclaimed tells of a clean topic that holds records while nothing was ever claimed in the
// entry's scope: those that another program wrote there. Copies of them would be forwarded. The
// store is opened when it is needed.
func TellUnclaimed(
	ctx context.Context, clusters kafka.Clusters, e *Entry, open func() (dedup.Store, error),
	tell func(string),
) error {
	output, err := logreader.Describe(ctx, clusters.Of(e.Topic, e.Output), e.Output,
		logreader.Bounds{})
	if err != nil || output.Offsets() == 0 {
		return err
	}
	store, err := open()
	if err != nil {
		return err
	}
	if e.Extractor == nil {
		if err := e.Compare(ctx, store); err != nil {
			return err
		}
	}
	_, registered, err := store.Registered(ctx, e.ClaimScope())
	if err != nil || registered {
		return err
	}
	tell(fmt.Sprintf("topic %s holds %d offsets already, and nothing is claimed in this scope: "+
		"copies of what is there would be forwarded. If it came from %s, claim it first: "+
		"kdedup backfill --topic %s", e.Output, output.Offsets(), e.Input, e.Input))
	return nil
}

// sayUnclaimed is for setup, whose user may not be allowed to look at all of it.
func sayUnclaimed(
	ctx context.Context, servers *Servers, clusters kafka.Clusters, topics []config.Topic,
	say func(string),
) {
	var failed error
	open := func() (store dedup.Store, _ error) {
		if failed == nil { // one that does not answer is not waited for again
			store, failed = servers.StoreToLook(ctx)
		}
		return store, failed
	}
	for _, e := range Entries(topics) {
		err := TellUnclaimed(ctx, clusters, &e, open, say)
		if err != nil && !errors.Is(err, embedded.ErrUsed) { // by a process that runs
			say(fmt.Sprintf("what %s holds already was not looked at: %v", e.Output, err))
		}
	}
}
