package migration

import (
	"context"
	"errors"
	"fmt"

	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/dedup"
)

// end comes after the comparison. From the first note on nobody begins to claim in the old store;
// who began before is seen after it.
func (s *step) end(ctx context.Context, before sight) error {
	ctx, cancel := context.WithTimeout(ctx, connect.StartTimeout)
	defer cancel()
	err := dedup.MovedAway.Write(ctx, s.Migration.old.store, s.from, s.newPlace.String())
	if err != nil {
		return err
	}
	if err := s.nobodyCame(ctx, before); errors.Is(err, errClaimants) {
		return errors.Join(fmt.Errorf("%w. The old store can be used as before, and the new one is "+
			"refused: stop that process, and run kdedup migrate again", err),
			dedup.MovedAway.Erase(ctx, s.Migration.old.store, s.from))
	} else if err != nil {
		return err
	}
	if err := s.declare(ctx); err != nil {
		return err
	}
	if err := dedup.MovedAway.Erase(ctx, s.Migration.new.store, s.to); err != nil {
		return err
	}
	if err := dedup.NotAllHere.Erase(ctx, s.Migration.new.store, s.to); err != nil {
		return err
	}
	s.o.Say(fmt.Sprintf("scope %s: moved to %s. Start kdedup with the new file; the old store is "+
		"refused from now on", s.pair.old, s.newPlace.name))
	return nil
}

// nobodyCame looks for those that began to claim while the claims were copied.
func (s *step) nobodyCame(ctx context.Context, before sight) error {
	if err := s.refuseMembers(ctx, s.pair); err != nil {
		return err
	}
	now, err := s.look(ctx)
	if err != nil {
		return err
	}
	if change := now.change(before); change != "" {
		return fmt.Errorf("%w: %s", errClaimants, change)
	}
	return nil
}

// declare says for which fences the new store stands: for those that the old one knew.
func (s *step) declare(ctx context.Context) error {
	for i := range s.news {
		e := &s.news[i]
		group, client := connect.GroupAt(s.Migration.new.clusters, e.Topic)
		found, err := group.Fences(ctx, client)
		if err != nil {
			return err
		}
		handled := make(map[string]*connect.Handled)
		for p, f := range found.Fences {
			if f.Store == "" || f.Store == s.newPlace.identity || f.Foreign(found.Input) {
				continue
			}
			known, err := s.Migration.old.knowledge.Knows(ctx, s.oldEntry(e.Input), p, f)
			if err != nil {
				return err
			}
			if !known {
				continue
			}
			if handled[f.Store] == nil {
				handled[f.Store] = &connect.Handled{}
			}
			handled[f.Store].Add(p, f)
		}
		for store, h := range handled {
			if err := connect.DeclareHandled(ctx, s.Migration.new.store, e, store, *h); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *step) oldEntry(input string) *connect.Entry {
	for i := range s.olds {
		if s.olds[i].Input == input {
			return &s.olds[i]
		}
	}
	panic("no entry for " + input) // plan has compared the inputs
}
