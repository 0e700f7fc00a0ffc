package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/consumer/client"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/kafka"
)

// entry is one of the configuration's topics and its place there, for errors.
type entry struct {
	path string // topics[2]
	config.Topic
	extractor *dedup.Extractor // known after compare
}

func entriesOf(topics []config.Topic) []entry {
	entries := make([]entry, len(topics))
	for i, t := range topics {
		entries[i] = entry{path: fmt.Sprintf("topics[%d]", i), Topic: t}
	}
	return entries
}

// each joins the errors of all entries, under their paths.
func each(entries []entry, check func(*entry) error) error {
	var problems []error
	for i := range entries {
		if err := check(&entries[i]); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", entries[i].path, err))
		}
	}
	return errors.Join(problems...)
}

// checkTopics asks the brokers and joins every problem.
func checkTopics(ctx context.Context, client *kgo.Client, c config.Config, entries []entry) error {
	if err := kafka.Ping(ctx, client); err != nil {
		return err
	}
	var problems []error
	for _, e := range entries {
		found := kafka.CheckRights(ctx, client, e.Topic, transactionalIDs(c, e.Topic))
		if len(found) == 0 { // without rights the topics seem to be missing
			found = kafka.Check(ctx, client, e.Topic)
		}
		if len(found) == 0 && e.OnSkip != config.ActionAccept {
			found = errorsOf(groupOf(e.Topic).Check(ctx, client))
		}
		for _, err := range found {
			problems = append(problems, fmt.Errorf("%s: %w", e.path, err))
		}
	}
	return errors.Join(problems...)
}

func errorsOf(err error) []error {
	if err == nil {
		return nil
	}
	return []error{err}
}

// register leaves the entries' marks in the store and the group: the settings of their scopes, and where
// start: latest begins. All scopes are compared before the first is registered, so that one that is
// refused leaves nothing of the others behind.
func (p *process) register(ctx context.Context, entries []entry) error {
	k := p.knowledge
	if err := each(entries, func(e *entry) error {
		if err := e.compare(ctx, p.store); err != nil {
			return err
		}
		return k.check(ctx, p.admin, e)
	}); err != nil {
		return err
	}
	if p.identity == "" { // at the start: lanes read it later on
		identity, err := dedup.Identify(ctx, p.store)
		if err != nil {
			return err
		}
		p.identity = identity
	}
	return each(entries, func(e *entry) error { return p.registerOne(ctx, e) })
}

func (p *process) registerOne(ctx context.Context, e *entry) error {
	if err := e.register(ctx, p.store); err != nil {
		return err
	}
	if err := p.knowledge.note(ctx, e); err != nil {
		return err
	}
	if e.Start == config.StartLatest {
		return client.PinStart(ctx, p.admin, e.ConsumerGroup, e.Input, e.FenceTopic, earlierOf(e.Topic))
	}
	return nil
}

// compare finds out whether the claims that the scope has mean to this entry what they meant to those that
// made them. It changes nothing in the store.
func (e *entry) compare(ctx context.Context, store dedup.Store) (err error) {
	if e.extractor, err = dedup.NewExtractor(sourceOf(e.MessageID)); err != nil {
		return err
	}
	registered, found, err := store.Registered(ctx, e.scope())
	if err != nil || !found {
		return err
	}
	mismatch := dedup.CompareScopes(e.scope(), registered)
	if mismatch == nil {
		return nil
	}
	if _, claimed, err := amender(ctx, store, registered); err != nil || claimed {
		return errors.Join(mismatch, err)
	}
	return nil
}

// amender is the store as one that can register a scope anew, and whether the scope has claims, which forbids it.
func amender(ctx context.Context, store dedup.Store, registered dedup.Scope) (amends dedup.Amender, claimed bool, err error) {
	if watched, is := store.(interface{ Unwrap() dedup.Store }); is {
		store = watched.Unwrap()
	}
	amends, can := store.(dedup.Amender)
	if !can {
		return nil, true, nil
	}
	claimed, err = amends.HasClaims(ctx, registered)
	return amends, claimed, err
}

// register records the scope's settings, or those of now in the place of earlier ones by which nothing was claimed.
func (e *entry) register(ctx context.Context, store dedup.Store) error {
	mismatch := store.Register(ctx, e.scope())
	if !errors.Is(mismatch, dedup.ErrScopeMismatch) {
		return mismatch
	}
	registered, found, err := store.Registered(ctx, e.scope())
	if err != nil || !found {
		return errors.Join(mismatch, err)
	}
	amends, claimed, err := amender(ctx, store, registered)
	if err != nil || claimed {
		return errors.Join(mismatch, err)
	}
	return amends.Amend(ctx, registered, e.scope())
}

func (e *entry) scope() dedup.Scope { return scopeOf(e.Topic, e.extractor.String()) }
