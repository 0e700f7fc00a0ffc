package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/config"
)

// Widen adds partitions to topics of a pipeline that are kdedup's own, when the input has got more:
// to the fence topic, and with auto_setup to the others that take the input's partition numbers.
// Any other topic is its owner's, whose readers may count on the number.
func Widen(ctx context.Context, clusters Clusters, t config.Topic, say func(string)) error {
	l, err := describe(ctx, clusters, t)
	if err != nil {
		return err
	}
	return setup{layout: l, say: say}.widen(ctx)
}

func (s setup) widen(ctx context.Context) error {
	t := s.layout.topic
	own := []string{t.FenceTopic}
	if t.AutoSetup && t.Partitioner == config.PartitionerPreserve {
		own = append(own, t.Output, t.DuplicatesTopic, t.DeadLetterTopic)
	}
	var errs []error
	for _, topic := range slices.DeleteFunc(own, func(name string) bool { return name == "" }) {
		errs = append(errs, s.widenTopic(ctx, topic))
	}
	return errors.Join(errs...)
}

func (s setup) widenTopic(ctx context.Context, topic string) error {
	want := s.layout.partitions(s.layout.topic.Input)
	if !s.layout.exists(topic) || s.layout.partitions(topic) >= want {
		return nil
	}
	what := fmt.Sprintf("partitions of topic %s%s: %d to %d", topic, s.place(topic),
		s.layout.partitions(topic), want)
	if s.dryRun {
		s.say("would add " + what)
		return nil
	}
	answer, err := s.admin(topic).UpdatePartitions(ctx, want, topic)
	if err == nil {
		err = answer.Error()
	}
	if errors.Is(err, kerr.InvalidPartitions) { // another lane, or an operator, was faster
		return nil
	}
	if err != nil {
		return denied(fmt.Errorf("add partitions to topic %s: %w", topic, err), "topic "+topic,
			kmsg.ACLOperationAlter)
	}
	s.say("added " + what)
	return nil
}
