package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/config"
)

// Setup creates the topics of a pipeline that are missing and reports each step through say. It
// changes nothing that exists, except that it adds partitions to a fence topic when the input has
// got more. With dryRun it only says what it would do.
func Setup(ctx context.Context, client *kgo.Client, t config.Topic, dryRun bool, say func(string)) error {
	if err := checkVisible(ctx, client, t); err != nil {
		return err
	}
	admin := kadm.NewClient(client)
	l, err := describe(ctx, admin, t)
	if err != nil {
		return err
	}
	if !l.exists(t.Input) {
		return l.missing(t.Input)
	}
	s := setup{admin: admin, layout: l, dryRun: dryRun, say: say}
	inputLimit, err := s.inputLimit(ctx)
	if err != nil {
		return err
	}
	if err := s.create(ctx, t.Output, map[string]string{"max.message.bytes": strconv.Itoa(inputLimit)}); err != nil {
		return err
	}
	// Room for the headers that kdedup adds: what cannot go to the output must fit here.
	roomy := map[string]string{"max.message.bytes": strconv.Itoa(inputLimit + headerRoom)}
	for _, topic := range []string{t.DuplicatesTopic, t.DeadLetterTopic} {
		if topic == "" {
			continue
		}
		if err := s.create(ctx, topic, roomy); err != nil {
			return err
		}
	}
	if err := s.create(ctx, t.FenceTopic, map[string]string{"cleanup.policy": "compact"}); err != nil {
		return err
	}
	return s.widenFence(ctx)
}

const headerRoom = 64 << 10

type setup struct {
	admin  *kadm.Client
	layout layout
	dryRun bool
	say    func(string)
}

func (s setup) inputLimit(ctx context.Context) (int, error) {
	input := s.layout.topic.Input
	values, err := settings(ctx, s.admin, input)
	if err != nil {
		return 0, err
	}
	limit, err := strconv.Atoi(values[input]["max.message.bytes"])
	if err != nil {
		return 0, fmt.Errorf("topic %s: max.message.bytes: %w", input, err)
	}
	return limit, nil
}

// create makes a topic with as many partitions as the input and the broker's replication factor.
func (s setup) create(ctx context.Context, topic string, values map[string]string) error {
	if s.layout.exists(topic) {
		s.say("topic " + topic + " exists")
		return nil
	}
	partitions := s.layout.partitions(s.layout.topic.Input)
	what := fmt.Sprintf("topic %s (%d partitions", topic, partitions)
	configs := make(map[string]*string)
	for k, v := range values {
		configs[k] = &v
		what += ", " + k + "=" + v
	}
	what += ")"
	if s.dryRun {
		s.say("would create " + what)
		return nil
	}
	_, err := s.admin.CreateTopic(ctx, int32(partitions), -1, configs, topic)
	late := errors.Is(err, kerr.TopicAlreadyExists) // another setup runs, or ran just now
	if err != nil && !late {
		return denied(fmt.Errorf("create topic %s: %w", topic, err), "topic "+topic, kmsg.ACLOperationCreate)
	}
	if err := s.waitVisible(ctx, topic, partitions); err != nil {
		return err
	}
	if late {
		s.say("topic " + topic + " exists")
	} else {
		s.say("created " + what)
	}
	return nil
}

// waitVisible returns when the brokers tell of the topic and its leaders: they learn of it a little
// later than the controller that made it, and a start right after the setup would miss it.
func (s setup) waitVisible(ctx context.Context, topic string, partitions int) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		details, err := s.admin.ListTopics(ctx, topic)
		if err == nil && hasLeaders(details[topic], partitions) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for topic %s: %w", topic, errors.Join(context.Cause(ctx), err))
		}
	}
}

func hasLeaders(d kadm.TopicDetail, partitions int) bool {
	for _, p := range d.Partitions {
		if p.Err != nil || p.Leader < 0 {
			return false
		}
	}
	return d.Err == nil && len(d.Partitions) == partitions
}

func (s setup) widenFence(ctx context.Context) error {
	fence := s.layout.topic.FenceTopic
	want := s.layout.partitions(s.layout.topic.Input)
	if !s.layout.exists(fence) || s.layout.partitions(fence) >= want {
		return nil
	}
	what := fmt.Sprintf("partitions of topic %s: %d to %d", fence, s.layout.partitions(fence), want)
	if s.dryRun {
		s.say("would add " + what)
		return nil
	}
	answer, err := s.admin.UpdatePartitions(ctx, want, fence)
	if err == nil {
		err = answer.Error()
	}
	if err != nil {
		return denied(fmt.Errorf("add partitions to topic %s: %w", fence, err), "topic "+fence, kmsg.ACLOperationAlter)
	}
	s.say("added " + what)
	return nil
}
