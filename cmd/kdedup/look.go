package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/cmd/kdedup/internal/wiring"
	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/internal/kafka"
)

// look is a connection to the brokers that joins no group.
type look struct {
	client   *kgo.Client
	options  []kgo.Opt
	clientID string
	log      *slog.Logger
}

// connectToLook returns when a broker has answered.
func connectToLook(
	ctx context.Context, c config.Config, log *slog.Logger, clientID string,
) (*look, error) {
	ctx, cancel := context.WithTimeout(ctx, wiring.StartTimeout)
	defer cancel()
	connector, err := kafka.NewConnector(ctx, c.Kafka, log)
	if err != nil {
		return nil, err
	}
	l := &look{options: connector.AdminOptions(clientID, log), clientID: clientID, log: log}
	if l.client, err = kgo.NewClient(l.options...); err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	if err := kafka.Ping(ctx, l.client); err != nil {
		l.client.Close()
		return nil, err
	}
	return l, nil
}

// connectToOutput is a look at the cluster of kafka.output, once it has answered; the same look
// where there is none.
func (l *look) connectToOutput(ctx context.Context, c config.Config) (*look, error) {
	if !c.Kafka.Output.Apart() {
		return l, nil
	}
	ctx, cancel := context.WithTimeout(ctx, wiring.StartTimeout)
	defer cancel()
	connector, err := kafka.NewOutputConnector(ctx, c.Kafka, nil, l.log)
	if err != nil {
		return nil, err
	}
	output := &look{options: connector.AdminOptions(l.clientID, l.log), clientID: l.clientID,
		log: l.log}
	if output.client, err = kgo.NewClient(output.options...); err != nil {
		return nil, fmt.Errorf("kafka.output: %w", err)
	}
	if err := (kafka.Clusters{Input: l.client, Output: output.client}).Ping(ctx); err != nil {
		output.client.Close()
		return nil, err
	}
	return output, nil
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
	ctx, cancel := context.WithTimeout(ctx, wiring.StartTimeout)
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
