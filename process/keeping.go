package process

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/dedup/claimlog"
	"github.com/kdedup/kdedup/process/server"
)

// With store.keepers.keep: only, a process has the claim logs of its configuration, and no
// pipelines: it needs no right on a topic but on these.

// keepsOnly reports whether the process keeps claims for others, and does nothing else.
func keepsOnly(file config.Config) bool {
	return file.Store.Logs() && file.Store.Keepers.Keep == config.KeepOnly
}

// openKeeping connects what a keeper needs, and begins to keep. As open, it may be called again.
func (p *running) openKeeping(ctx context.Context, file config.Config) (err error) {
	if p.clients, err = p.connect(ctx, file); err != nil {
		return err
	}
	c, err := p.expand(ctx, file)
	if err != nil {
		return err
	}
	if err := connect.CheckClaimLogs(ctx, p.clusters, c); err != nil {
		if setsUp := func(t config.Topic) bool { return t.AutoSetup }; !unreachable(err) &&
			slices.ContainsFunc(c.Topics, setsUp) {
			return notSetUp{err}
		}
		return err
	}
	if err := p.openStore(ctx, c); err != nil {
		return err
	}
	p.store = p.opened.store
	if err := connect.Keep(p.store, c); err != nil {
		return err
	}
	if err := p.countStore(); err != nil {
		return err
	}
	p.activate(file, c, nil, nil)
	p.families.config.Loaded(ConfigHash(file), p.active.Load().since)
	p.log.Info("this process keeps claims for others, and runs no pipelines",
		"instance", file.Instance, "topics", len(c.Topics))
	return nil
}

// notSetUp is what a keeper waits for: the processes with lanes make the topics of entries with
// auto_setup, at their start.
type notSetUp struct{ error }

func (n notSetUp) Unwrap() error { return n.error }

func waitsForSetup(err error) bool { return errors.As(err, new(notSetUp)) }

// applyKeeping keeps the logs that a configuration has more. Those that it has no more are kept
// until the end of the process: others may not have read the same file yet.
func (p *running) applyKeeping(
	ctx context.Context, file, to config.Config, why cause,
) error {
	checking, cancel := context.WithTimeout(ctx, connect.StartTimeout)
	defer cancel()
	if err := connect.CheckClaimLogs(checking, p.clusters, to); err != nil {
		return unready{err}
	}
	if err := connect.Keep(p.store, to); err != nil {
		return err
	}
	if why == asReload {
		p.level.Set(levelOf(to.Log))
		p.families.config.Loaded(ConfigHash(file), time.Now())
		p.log.Info(string(why))
	}
	p.activate(file, to, nil, nil)
	return nil
}

// keepersNow are the processes that share out the shards of claim logs.
func keepersNow(states []claimlog.State) (all []server.Keeper) {
	for _, s := range states {
		for _, k := range s.Keepers {
			one := server.Keeper{ConsumerGroup: s.Group, Instance: k.Instance, Address: k.Address,
				State: server.KeeperSilent, Shards: append([]int{}, k.Shards...)}
			switch {
			case k.Self:
				one.State, one.Unread = server.KeeperSelf, &s.Left
			case !k.Keeps:
				one.State = server.KeeperAsks
			case k.Reached:
				one.State = server.KeeperAnswers
			}
			all = append(all, one)
		}
	}
	return all
}
