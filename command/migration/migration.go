package migration

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/kdedup/kdedup/command/migration/migrate"
	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/dedup"
)

// Options say what is moved.
type Options struct {
	Old, New config.Config
	Topic    string // the input of one; empty: all
	DryRun   bool   // DryRun is all that is called
	Logger   *slog.Logger
	Say      func(line string)
	Progress func(what string, claims int64)
	// Agree is asked before the first note is left; an error ends the work.
	Agree func(what string) error
}

// Migration is the work on two files.
type Migration struct {
	o        Options
	old, new *side
	pairs    []*pair
}

// Open connects both files and refuses what cannot be moved. Close comes in any case.
func Open(ctx context.Context, o Options) (*Migration, error) {
	m := &Migration{o: o, old: &side{flag: "--from", config: o.Old},
		new: &side{flag: "--config", config: o.New}}
	var err error
	for _, s := range []*config.Config{&o.Old, &o.New} {
		if *s, err = only(*s, o.Topic); err != nil {
			return m, err
		}
	}
	m.o, m.old.config, m.new.config = o, o.Old, o.New
	if m.pairs, err = plan(o.Old.Topics, o.New.Topics, o.Topic); err != nil {
		return m, err
	}
	ctx, cancel := context.WithTimeout(ctx, connect.StartTimeout)
	defer cancel()
	m.old.parted(m.new)
	if err := errors.Join(m.old.connect(ctx, o.Logger), m.new.connect(ctx, o.Logger)); err != nil {
		return m, err
	}
	for _, p := range m.pairs {
		if err := m.refuseMembers(ctx, p); err != nil {
			return m, err
		}
	}
	if err := openStores(ctx, m.old, m.new, o.DryRun); err != nil {
		return m, err
	}
	if err := m.sameCluster(); err != nil {
		return m, err
	}
	for _, p := range m.pairs {
		if err := m.compare(ctx, p); err != nil {
			return m, err
		}
	}
	return m, nil
}

// Close ends the use of both.
func (m *Migration) Close() error { return closeSides(m.old, m.new) }

func (m *Migration) refuseMembers(ctx context.Context, p *pair) error {
	if err := m.old.refuseMembers(ctx, p.olds); err != nil {
		return err
	}
	return m.new.refuseMembers(ctx, p.news)
}

// sameCluster refuses the owners of another cluster: they are places in its logs.
func (m *Migration) sameCluster() error {
	if m.old.knowledge.SameCluster(m.new.knowledge) {
		return nil
	}
	return errors.New("the two files name different Kafka clusters: claims are owned by places " +
		"in the logs of one; docs/rollout.md has the way to another cluster")
}

// compare refuses claims that would mean something else in the new place.
func (m *Migration) compare(ctx context.Context, p *pair) error {
	for _, s := range []struct {
		side    *side
		entries []connect.Entry
	}{{m.old, p.olds}, {m.new, p.news}} {
		for i := range s.entries {
			if err := s.entries[i].Compare(ctx, s.side.store); err != nil {
				return fmt.Errorf("%s: %s: %w", s.side.flag, s.entries[i].Path, err)
			}
		}
	}
	before := p.olds[0].Extractor.String()
	for i := range p.news { // which may not be registered yet
		if err := p.news[i].Recall(before); err != nil {
			return err
		}
	}
	now := p.news[0].Extractor.String()
	if before != now {
		return fmt.Errorf("message_id of %s is %s in the file of --from, and %s in the other one: "+
			"the claims are of other IDs", p.news[0].Input, before, now)
	}
	return nil
}

// Run moves the claims of all scopes, one after the other. What was moved before is left alone.
func (m *Migration) Run(ctx context.Context) error {
	agreed := false
	for _, p := range m.pairs {
		step := &step{Migration: m, pair: p}
		done, err := step.prepare(ctx)
		if err == nil && !done && !agreed {
			err = m.o.Agree(step.what())
			agreed = err == nil
		}
		if err == nil && !done {
			err = step.run(ctx)
		}
		if err != nil {
			return fmt.Errorf("scope %s: %w", p.old, err)
		}
	}
	return nil
}

// DryRun only counts what Run would move.
func (m *Migration) DryRun(ctx context.Context) error {
	for _, p := range m.pairs {
		scope := p.olds[0].ClaimScope()
		if err := connect.WaitReady(ctx, m.old.store, scope); err != nil {
			return err
		}
		claims := int64(0)
		err := m.old.mover.Export(ctx, scope, func(page []dedup.Standing) error {
			claims += int64(len(page))
			m.o.Progress("counted", claims)
			return nil
		})
		if err != nil {
			return fmt.Errorf("scope %s: %w", p.old, err)
		}
		m.o.Say(fmt.Sprintf("would move %d claims of scope %s from %s to scope %s in %s", claims,
			p.old, connect.StoreName(m.o.Old.Store), p.new, connect.StoreName(m.o.New.Store)))
	}
	return nil
}

// Cancel lets the old store be used again, if the move to the new one has not ended.
func (m *Migration) Cancel(ctx context.Context) error {
	for _, p := range m.pairs {
		step := &step{Migration: m, pair: p}
		done, err := step.prepare(ctx)
		if err == nil && done {
			err = errors.New("it was moved: the way back is kdedup migrate in the other direction")
		}
		if err == nil {
			err = dedup.MovedAway.Erase(ctx, m.old.store, step.from)
		}
		if err != nil {
			return fmt.Errorf("scope %s: %w", p.old, err)
		}
		m.o.Say(fmt.Sprintf("scope %s: go on with the file of --from", p.old))
	}
	return nil
}

func (m *Migration) options(from, to dedup.Scope, what string) migrate.Options {
	return migrate.Options{
		From: migrate.Place{Store: m.old.mover, Scope: from},
		To:   migrate.Place{Store: m.new.mover, Scope: to},
		Progress: func(claims int64) {
			m.o.Progress(what, claims)
		},
	}
}

// only is the configuration with the entry of one topic in the place of its patterns, beside those
// that name their inputs.
func only(c config.Config, topic string) (config.Config, error) {
	if !c.HasPatterns() {
		return c, nil
	}
	if _, found := c.EntryOf(topic); !found {
		return c, fmt.Errorf("--topic must name one topic where the file has a pattern, got %q",
			topic)
	}
	c, _ = c.Expand([]string{topic})
	return c, nil
}
