package connect

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
)

// Entry is one of the configuration's topics and its place there, for errors.
type Entry struct {
	Path string // topics[2], or topics[2] (tenant-a.orders)
	config.Topic
	Extractor *messageid.Extractor // known after Compare
	Schemas   messageid.Registry   // for who extracts IDs
	Store     string               // the identity of the store, once the scope is registered
	// Ends are those of the input at the first start of its pattern; nil: it starts by itself.
	Ends map[int32]kadm.ListedOffset
	// KeepsEarlier says that the scope goes on as an earlier version read its preset, see Recall.
	KeepsEarlier bool
}

// Entries are the topics in their order.
func Entries(topics []config.Topic) []Entry {
	entries := make([]Entry, len(topics))
	for i, t := range topics {
		entries[i] = Entry{Path: config.PlaceOf(topics, i), Topic: t}
	}
	return entries
}

// Each joins the errors of all entries, under their paths.
func Each(entries []Entry, check func(*Entry) error) error {
	var problems []error
	for i := range entries {
		if err := check(&entries[i]); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", entries[i].Path, err))
		}
	}
	return errors.Join(problems...)
}

// CheckTopics asks the brokers and joins every problem.
func CheckTopics(
	ctx context.Context, clusters kafka.Clusters, c config.Config, entries []Entry,
) error {
	if err := clusters.Ping(ctx); err != nil {
		return err
	}
	var problems []error
	if err := checkClaimLogs(ctx, clusters, c); err != nil {
		problems = append(problems, err)
	}
	transactions := newDeliveries(clusters, c)
	for _, e := range entries {
		members := transactionalIDs(c, e.Topic)
		if err := transactions.check(ctx, e); err != nil {
			problems, members = append(problems, err), nil
		}
		found := kafka.CheckRights(ctx, clusters, e.Topic, members)
		if len(found) == 0 { // without rights the topics seem to be missing
			problems = append(problems, transactions.checkLimits(ctx, e)...)
			found = kafka.Check(ctx, clusters, e.Topic)
		}
		if len(found) == 0 && len(members) > 0 {
			problems = append(problems, transactions.checkTopics(ctx, e)...)
		}
		if len(found) == 0 && e.OnSkip != config.ActionAccept {
			found = errorsOf(checkGroup(ctx, clusters, e.Topic))
		}
		for _, err := range found {
			problems = append(problems, fmt.Errorf("%s: %w", e.Path, err))
		}
	}
	return errors.Join(problems...)
}

// checkGroup refuses a group that somebody else uses, on either cluster.
func checkGroup(ctx context.Context, clusters kafka.Clusters, t config.Topic) error {
	group, client := GroupAt(clusters, t)
	var err error
	switch {
	case clusters.SplitsGroup(t):
		err = GroupOf(t).CheckLeft(ctx, clusters.Input)
	case clusters.Apart():
		err = group.CheckNotAhead(ctx, clusters.Input, clusters.Output)
	}
	if err != nil {
		return err
	}
	return group.Check(ctx, client)
}

func errorsOf(err error) []error {
	if err == nil {
		return nil
	}
	return []error{err}
}

// Compare finds out whether the claims that the scope has mean to this entry what they meant to
// those that made them. It changes nothing in the store.
func (e *Entry) Compare(ctx context.Context, store dedup.Store) (err error) {
	if e.Extractor, err = ExtractorOf(e.Topic, e.Schemas); err != nil {
		return err
	}
	registered, found, err := store.Registered(ctx, e.ClaimScope())
	if err != nil || !found {
		return err
	}
	if err := e.Recall(registered.Extractor); err != nil {
		return err
	}
	mismatch := dedup.CompareScopes(e.ClaimScope(), registered)
	if mismatch == nil {
		return nil
	}
	if _, claimed, err := amender(ctx, store, registered); err != nil || claimed {
		return errors.Join(mismatch, err)
	}
	return nil
}

// Recall takes what the entry's preset stood for when its scope was registered. Other processes may
// still claim by that, and a record must have the ID under which it was claimed. So it holds for as
// long as the scope, if IDs are others now.
func (e *Entry) Recall(registered string) error {
	if e.Extractor.String() == registered {
		return nil
	}
	for _, before := range e.Before() {
		was, err := ExtractorOf(before.Topic, e.Schemas)
		switch {
		case err != nil:
			return err
		case was.String() != registered:
			continue // CompareScopes tells, if no other is
		case before.SameIDs:
			e.Extractor = e.Extractor.As(registered)
		default:
			e.Extractor, e.KeepsEarlier = was, true
		}
		return nil
	}
	return nil
}

// Earlier says what an operator should know of a scope that KeepsEarlier.
func (e *Entry) Earlier() string {
	return fmt.Sprintf("scope %s/%s goes on by what preset: %s stood for when it was made: IDs are "+
		"others since, and its claims would mean nothing. docs/recipes/%[3]s.md says what that "+
		"lets through, and how to go over", e.ScopeGroup, e.Scope, e.MessageID.Preset)
}

// amender is the store as one that can register a scope again, and whether the scope has claims,
// which forbids it.
func amender(
	ctx context.Context, store dedup.Store, registered dedup.Scope,
) (amends dedup.Amender, claimed bool, err error) {
	amends, can := dedup.Unwrapped(store).(dedup.Amender)
	if !can {
		return nil, true, nil
	}
	claimed, err = amends.HasClaims(ctx, registered)
	return amends, claimed, err
}

// Register records the scope's settings, or those of now in the place of earlier ones by which
// nothing was claimed.
func (e *Entry) Register(ctx context.Context, store dedup.Store) error {
	mismatch := store.Register(ctx, e.ClaimScope())
	if !errors.Is(mismatch, dedup.ErrScopeMismatch) {
		return mismatch
	}
	registered, found, err := store.Registered(ctx, e.ClaimScope())
	if err != nil || !found {
		return errors.Join(mismatch, err)
	}
	amends, claimed, err := amender(ctx, store, registered)
	if err != nil || claimed {
		return errors.Join(mismatch, err)
	}
	return amends.Amend(ctx, registered, e.ClaimScope())
}

// ClaimScope is what the claims of the entry stand under. Compare comes before it.
func (e *Entry) ClaimScope() dedup.Scope { return ScopeOf(e.Topic, e.Extractor.String()) }

// FindTopic finds the entry with this input, or makes that of a pattern. The only one needs no
// name.
func FindTopic(topics []config.Topic, input string) (config.Topic, error) {
	if input == "" && len(topics) == 1 && topics[0].Pattern == "" {
		return topics[0], nil
	}
	t, found := config.Config{Topics: topics}.EntryOf(input)
	if !found {
		var inputs []string
		for _, t := range topics {
			if t.Pattern != "" {
				t.Input = "a topic that matches " + t.Pattern
			}
			inputs = append(inputs, t.Input)
		}
		return config.Topic{}, fmt.Errorf("must be one of %s, got %q", strings.Join(inputs, ", "),
			input)
	}
	return t, nil
}
