package migration

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/memory"
)

// side is one of the two files in use.
type side struct {
	flag      string // that names the file
	config    config.Config
	servers   *connect.Servers
	clusters  kafka.Clusters
	store     dedup.Store
	mover     dedup.Mover
	knowledge connect.Knowledge
	index     string // a directory that goes with the side; empty: there is none
}

// connect makes the client, which is enough to look at the groups.
func (s *side) connect(ctx context.Context, log *slog.Logger) (err error) {
	s.servers = connect.NewServers(s.config, log)
	if s.clusters, err = s.servers.Reach(ctx); err != nil {
		return fmt.Errorf("%s: %w", s.flag, err)
	}
	return nil
}

// openStores opens both; two files may name one and the same. A dry run makes none.
func openStores(
	ctx context.Context, old, new *side, dryRun bool,
) error {
	if connect.NotMade(old.config.Store) {
		return fmt.Errorf("--from: there is no %s: a relative path starts at the working directory",
			connect.StoreName(old.config.Store))
	}
	if err := old.open(ctx); err != nil {
		return err
	}
	switch {
	case reflect.DeepEqual(old.config.Store, new.config.Store):
		new.store, new.mover = old.store, old.mover
	case dryRun && connect.NotMade(new.config.Store):
		empty := memory.New(memory.Options{})
		new.store, new.mover = empty, empty
	default:
		if err := new.open(ctx); err != nil {
			return err
		}
	}
	return errors.Join(old.know(ctx), new.know(ctx))
}

// parted gives the old store another directory for its index, if both are claim logs that would
// have the same one: an index belongs to one log.
func (s *side) parted(new *side) {
	ours, _ := s.config.Store.IndexPath()
	theirs, _ := new.config.Store.IndexPath()
	if ours != nil && theirs != nil && *ours == *theirs &&
		!reflect.DeepEqual(s.config.Store, new.config.Store) {
		*ours = filepath.Join(*ours, "migrate")
		s.index = *ours
	}
}

func (s *side) open(ctx context.Context) (err error) {
	if s.store, err = s.servers.Store(ctx); err != nil {
		return fmt.Errorf("%s: %w", s.flag, err)
	}
	var can bool
	if s.mover, can = s.store.(dedup.Mover); !can {
		return fmt.Errorf("%s: claims of a store of type %s cannot be moved", s.flag,
			s.config.Store.Type)
	}
	if err := connect.CheckRights(ctx, s.store); err != nil {
		return fmt.Errorf("%s: %w", s.flag, err)
	}
	return nil
}

func (s *side) know(ctx context.Context) (err error) {
	s.knowledge, err = connect.NewKnowledge(ctx, s.clusters.Input, s.store, s.config.Store)
	return err
}

// closeSides comes after all else. The store may be that of both sides, and is the old one's then.
func closeSides(old, new *side) (err error) {
	for _, s := range []*side{old, new} {
		if s.servers != nil {
			err = errors.Join(err, s.servers.Close())
		}
	}
	if old.index != "" {
		err = errors.Join(err, os.RemoveAll(old.index))
	}
	return err
}

// refuseMembers wants groups in which nobody is.
func (s *side) refuseMembers(ctx context.Context, entries []connect.Entry) error {
	for _, e := range entries {
		state, err := kafka.GroupState(ctx, s.clusters.OfGroup(e.Topic), e.ConsumerGroup)
		if err != nil {
			return err
		}
		if state != "" {
			return fmt.Errorf("%w: consumer group %s of %s has members (%s): stop all processes "+
				"that claim in its scope; one that was killed counts until its session_timeout "+
				"has passed", errClaimants, e.ConsumerGroup, e.Input, state)
		}
	}
	return nil
}

// errClaimants says that somebody claims.
var errClaimants = errors.New("claims are made while they are moved")

// place names a scope in a store for a note: what it is told by, and what people read.
type place struct {
	identity string // of the store; empty: it has none yet
	scope    string
	name     string
}

func (s *side) placeOf(ctx context.Context, scope dedup.Scope) (place, error) {
	identity, _, err := dedup.IdentityOf(ctx, s.store, scope)
	return place{identity: identity, scope: scope.ConsumerGroup + "/" + scope.Name,
		name: connect.StoreName(s.config.Store)}, err
}

func (p place) key() string {
	return p.identity + connect.PlaceBreak + p.scope + connect.PlaceBreak
}

func (p place) String() string { return p.key() + p.name }

// is reports whether a note means the place; its name may have changed.
func (p place) is(note string) bool {
	return p.identity != "" && strings.HasPrefix(note, p.key())
}
