package migration

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kdedup/kdedup/command/migration/migrate"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/dedup"
)

// step is the move of one scope.
type step struct {
	*Migration
	*pair
	from, to           dedup.Scope
	oldPlace, newPlace place
}

func (s *step) what() string {
	return fmt.Sprintf("Move the claims of scope %s from %s to scope %s in %s?", s.pair.old,
		s.oldPlace.name, s.pair.new, s.newPlace.name)
}

// prepare reads the notes. It reports whether the scope was moved already.
func (s *step) prepare(ctx context.Context) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, connect.StartTimeout)
	defer cancel()
	s.from, s.to = s.olds[0].ClaimScope(), s.news[0].ClaimScope()
	if err := s.registered(ctx); err != nil {
		return false, err
	}
	// It is registered, so it counts as one that knows what fences without a name tell.
	if _, err := dedup.Identify(ctx, s.Migration.old.store, s.from); err != nil {
		return false, err
	}
	if s.oldPlace, err = s.Migration.old.placeOf(ctx, s.from); err != nil {
		return false, err
	}
	if s.newPlace, err = s.Migration.new.placeOf(ctx, s.to); err != nil {
		return false, err
	}
	if s.oldPlace.identity != "" && s.oldPlace.key() == s.newPlace.key() {
		return false, errors.New("both files name the same scope in the same store; to spread its " +
			"claims over other buckets or shards, name another scope, keyspace or claim topic in " +
			"the new file")
	}
	to, moved, err := dedup.MovedAway.Read(ctx, s.Migration.old.store, s.from)
	if err != nil {
		return false, err
	}
	from, begun, err := dedup.NotAllHere.Read(ctx, s.Migration.new.store, s.to)
	if err != nil {
		return false, err
	}
	switch {
	case moved && !s.newPlace.is(to):
		return false, fmt.Errorf("its claims were moved to %s: name the file of that store "+
			"behind --from", connect.PlaceName(to))
	case moved && !begun:
		s.o.Say(fmt.Sprintf("scope %s was moved to %s before", s.pair.old, s.newPlace.name))
		return true, nil
	case begun && !s.oldPlace.is(from):
		return false, fmt.Errorf("the new store waits for the claims of %s: name the file of that "+
			"store behind --from, or another place in the new file", connect.PlaceName(from))
	}
	return false, nil
}

// registered wants an old scope that has something to move, and all of it.
func (s *step) registered(ctx context.Context) error {
	_, found, err := s.Migration.old.store.Registered(ctx, s.from)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("%s knows no such scope: there is nothing to move",
			connect.StoreName(s.o.Old.Store))
	}
	waits, incomplete, err := dedup.NotAllHere.Read(ctx, s.Migration.old.store, s.from)
	if err == nil && incomplete {
		err = fmt.Errorf("its claims are not all in %s: they are being moved there from %s",
			connect.StoreName(s.o.Old.Store), connect.PlaceName(waits))
	}
	return err
}

// run moves the claims. After a crash at any point it may be run again.
func (s *step) run(ctx context.Context) error {
	before, err := s.look(ctx)
	if err != nil {
		return err
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	for _, await := range []struct {
		store dedup.Store
		scope dedup.Scope
	}{{s.Migration.old.store, s.from}, {s.Migration.new.store, s.to}} {
		if err := connect.WaitReady(ctx, await.store, await.scope); err != nil {
			return err
		}
	}
	err = s.copy(ctx)
	if err == nil {
		err = s.compare(ctx)
	}
	if err != nil {
		return fmt.Errorf("%w; the old store is as it was, and the new one is refused until all "+
			"claims are there: run it again", err)
	}
	return s.end(ctx, before)
}

// look is what the groups of both files show.
func (s *step) look(ctx context.Context) (sight, error) {
	ctx, cancel := context.WithTimeout(ctx, connect.StartTimeout)
	defer cancel()
	seen, err := s.Migration.old.look(ctx, s.olds)
	if err != nil {
		return nil, err
	}
	also, err := s.Migration.new.look(ctx, s.news)
	for what, text := range also {
		seen["(new file) "+what] = text
	}
	return seen, err
}

// begin has the new store refused before anything else is done to it: one that is registered counts
// as one that knows what fences of early versions tell.
func (s *step) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connect.StartTimeout)
	defer cancel()
	store := s.Migration.new.store
	if err := dedup.NotAllHere.Write(ctx, store, s.to, s.oldPlace.String()); err != nil {
		return err
	}
	for i := range s.news {
		if err := s.news[i].Register(ctx, store); err != nil {
			return err
		}
	}
	if _, err := dedup.Identify(ctx, store, s.to); err != nil {
		return err
	}
	var err error
	if s.newPlace, err = s.Migration.new.placeOf(ctx, s.to); err != nil {
		return err
	}
	return s.noteClusters(ctx)
}

// noteClusters takes over whose input the claims are of.
func (s *step) noteClusters(ctx context.Context) error {
	for i := range s.olds {
		e := &s.olds[i]
		if err := s.Migration.old.knowledge.CopyCluster(
			ctx, e, s.Migration.new.knowledge, s.to,
		); err != nil {
			return err
		}
	}
	return nil
}

func (s *step) copy(ctx context.Context) error {
	c, err := migrate.Copy(ctx, s.options(s.from, s.to, "copied"))
	s.o.Say(fmt.Sprintf("scope %s: %d claims copied, %d were there, %d had ended, %d differ",
		s.pair.old, c.Copied, c.There, c.Ended, c.Differ.Count))
	if err == nil && c.Differ.Count > 0 {
		err = differs(c.Differ)
	}
	return err
}

func (s *step) compare(ctx context.Context) error {
	c, err := migrate.Compare(ctx, s.options(s.from, s.to, "compared"))
	if err != nil {
		return err
	}
	s.o.Say(fmt.Sprintf("scope %s: compared %d claims in the old store and %d in the new one, "+
		"%d differ", s.pair.old, c.Old, c.New, c.Differ.Count))
	if c.Differ.Count > 0 {
		return differs(c.Differ)
	}
	return nil
}

// errDiffer says that the two stores have not the same claims.
var errDiffer = errors.New("the stores differ")

func differs(d migrate.Differences) error {
	var lines strings.Builder
	for _, e := range d.Examples {
		fmt.Fprintf(&lines, "\n  %s", example(e))
	}
	return fmt.Errorf("%w in %d claims: the new store had claims of its own, or somebody has "+
		"claimed or released meanwhile. Name an empty place in the new file, or release what the "+
		"new store has alone with kdedup id release%s", errDiffer, d.Count, &lines)
}

func example(d migrate.Difference) string {
	id := ""
	told := func(c *dedup.Standing) string {
		if c == nil {
			return "nobody"
		}
		id = connect.ShownID(c.ID)
		ends := ""
		if !c.Ends.IsZero() {
			ends = ", until " + c.Ends.UTC().Format("2006-01-02T15:04:05Z")
		}
		return fmt.Sprintf("partition %d, offset %d, claimed %s%s", c.Owner.Partition,
			c.Owner.Offset, c.ClaimedAt.UTC().Format("2006-01-02T15:04:05.000Z"), ends)
	}
	old, new := told(d.Old), told(d.New)
	return fmt.Sprintf("%s is owned by %s; in the new store by %s", id, old, new)
}
