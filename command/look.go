package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/connect/kafka"
)

// look is a connection to the brokers of one cluster that joins no group.
type look struct {
	client  *kgo.Client
	options []kgo.Opt // of further clients
	log     *slog.Logger
}

// connectToLook returns when a broker of each cluster has answered: that of the inputs, and that of
// the clean topics, which is the same one without kafka.output.
func connectToLook(
	ctx context.Context, servers *connect.Servers, work string, log *slog.Logger,
) (input, output *look, err error) {
	ctx, cancel := context.WithTimeout(ctx, connect.StartTimeout)
	defer cancel()
	clusters, err := servers.Reach(ctx)
	if err != nil {
		return nil, nil, err
	}
	input = &look{client: clusters.Input, log: log}
	if input.options, err = servers.InputOptions(ctx, work); err != nil || !clusters.Apart() {
		return input, input, err
	}
	output = &look{client: clusters.Output, log: log}
	output.options, err = servers.OutputOptions(ctx, work)
	return input, output, err
}

// wantTopic refuses a topic that does not exist.
func (l *look) wantTopic(ctx context.Context, name string) error {
	names, err := l.topics(ctx)
	if err != nil {
		return err
	}
	return knownTopic(name, names)
}

func (l *look) topics(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, connect.StartTimeout)
	defer cancel()
	return kafka.TopicNames(ctx, l.client)
}

// knownTopic refuses a topic that does not exist, with those that may be meant.
func knownTopic(name string, names []string) error {
	if err := missingTopic(name, names); err != nil {
		return usageError{wrongAnswer{err}}
	}
	return nil
}

func missingTopic(name string, names []string) error {
	if slices.Contains(names, name) {
		return nil
	}
	text := fmt.Sprintf("topic %s does not exist, or may not be seen", name)
	switch near := kafka.Near(name, names); {
	case len(near) > 0:
		text += "; did you mean " + someNames(near) + "?"
	case len(names) > 0:
		text += "; there are " + someNames(names)
	default:
		text += "; no topic can be seen"
	}
	return errors.New(text)
}

func someNames(names []string) string {
	const most = 20
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
