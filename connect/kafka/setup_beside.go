package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/config"
)

// Beside is a topic that is not a pipeline's own.
type Beside struct {
	Name       string
	Partitions int
	Settings   []Setting
	// a setting that is raised to its value in a topic that exists; -1 is more than anything
	AtLeast string
	// Forwarded: it belongs to what the pipeline forwards, and is on the cluster that has that.
	Forwarded bool
}

// SetupBeside creates a topic that is missing, with as many replicas as the pipeline's input.
func SetupBeside(
	ctx context.Context, clusters Clusters, t config.Topic, topic Beside, dryRun bool,
	say func(string),
) error {
	l, err := describe(ctx, clusters, t)
	if err != nil {
		return err
	}
	s := setup{layout: l, beside: t.Input, dryRun: dryRun, say: say}
	if topic.Forwarded {
		s.beside = t.Output
	}
	if err := checkVisibleAt(ctx, clusters.Of(t, s.beside), topic.Name); err != nil {
		return err
	}
	details, err := s.admin(topic.Name).ListTopics(ctx, topic.Name)
	if err != nil {
		return fmt.Errorf("list topics: %w", err)
	}
	maps.Copy(l.details, details)
	if err := s.readInput(ctx); err != nil {
		return err
	}
	if l.exists(topic.Name) && topic.AtLeast != "" {
		return s.raise(ctx, topic)
	}
	return s.create(ctx, topic.Name, topic.Partitions,
		append(slices.Clone(topic.Settings), s.inherited("min.insync.replicas")...))
}

// raise alters a setting whose value is too small.
func (s setup) raise(ctx context.Context, topic Beside) error {
	values, err := topicSettings(ctx, s.client(topic.Name), topic.Name)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(topic.Settings, func(v Setting) bool { return v.Key == topic.AtLeast })
	want := topic.Settings[at]
	is, err := strconv.ParseInt(values[want.Key].value, 10, 64)
	if err != nil {
		return fmt.Errorf("topic %s: %s: %w", topic.Name, want.Key, err)
	}
	least, err := strconv.ParseInt(want.Value, 10, 64)
	if err != nil {
		return fmt.Errorf("topic %s: %s: %w", topic.Name, want.Key, err)
	}
	what := fmt.Sprintf("%s of topic %s: %d to %d", want.Key, topic.Name, is, least)
	switch {
	case is < 0 || is >= least:
		s.say("topic " + topic.Name + " exists")
		return nil
	case s.dryRun:
		s.say("would raise " + what)
		return nil
	}
	answers, err := s.admin(topic.Name).AlterTopicConfigs(ctx,
		[]kadm.AlterConfig{{Op: kadm.SetConfig, Name: want.Key, Value: &want.Value}}, topic.Name)
	for _, a := range answers {
		err = errors.Join(err, a.Err)
	}
	if err != nil {
		return denied(fmt.Errorf("raise %s: %w", what, err), "topic "+topic.Name,
			kmsg.ACLOperationAlterConfigs)
	}
	s.say("raised " + what)
	return nil
}
