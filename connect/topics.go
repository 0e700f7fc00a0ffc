package connect

import (
	"context"
	"errors"
	"log/slog"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect/kafka"
)

// CompareTopics tells which records the topics would refuse or lose. Topics that lose some whatever
// they are, are an error. tolerant: the user may lack the right to see all settings.
func CompareTopics(
	ctx context.Context, clusters kafka.Clusters, t config.Topic, tolerant bool, tell func(string),
) error {
	compared, err := kafka.Compare(ctx, clusters, t)
	if err != nil && tolerant {
		tell("the topics' settings were not compared: " + err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	if compared.Unknown != nil && !tolerant {
		tell(compared.Unknown.Error())
	}
	for _, text := range compared.Told {
		tell(text)
	}
	var problems []error
	for _, text := range compared.Refused {
		problems = append(problems, errors.New(text))
	}
	return errors.Join(problems...)
}

// WarnOf logs what is told about a topic.
func WarnOf(log *slog.Logger, t config.Topic) func(string) {
	return func(text string) { log.Warn(text, "topic", t.Input) }
}
