package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/config"
)

// Setup creates the topics of a pipeline that are missing, like the input, and reports each step
// through say. It changes nothing that exists, except that it adds partitions when the input has
// got more, see Widen. With dryRun it only says what it would do.
func Setup(
	ctx context.Context, clusters Clusters, t config.Topic, dryRun bool, say func(string),
) error {
	if err := checkVisible(ctx, clusters, t); err != nil {
		return err
	}
	l, err := describe(ctx, clusters, t)
	if err != nil {
		return err
	}
	if !l.exists(t.Input) {
		return l.missing(t.Input)
	}
	s := setup{layout: l, dryRun: dryRun, say: say}
	if err := s.readInput(ctx); err != nil {
		return err
	}
	limit := usualLimit
	if v := s.input["max.message.bytes"]; v.known() {
		if limit, err = strconv.Atoi(v.value); err != nil {
			return fmt.Errorf("topic %s: max.message.bytes: %w", t.Input, err)
		}
	}
	partitions := l.partitions(t.Input)
	if err := s.create(ctx, t.Output, partitions, s.keepingAll(limit)); err != nil {
		return err
	}
	for _, topic := range []string{t.DuplicatesTopic, t.DeadLetterTopic} {
		if topic == "" {
			continue
		}
		// Room for the headers that kdedup adds: what cannot go to the output must fit here.
		if err := s.create(ctx, topic, partitions, s.keepingAll(limit+headerRoom)); err != nil {
			return err
		}
	}
	if err := s.createFence(ctx, t.FenceTopic, partitions); err != nil {
		return err
	}
	return s.widen(ctx)
}

// createFence makes a topic that keeps all fences where the brokers compact none.
func (s setup) createFence(ctx context.Context, fence string, partitions int) error {
	others := append(s.inherited("min.insync.replicas"), s.classic()...)
	err := s.create(ctx, fence, partitions,
		append(slices.Clone(others), Setting{"cleanup.policy", "compact", true}))
	if err == nil || !refusesSetting(err) {
		return err
	}
	s.say(fmt.Sprintf("the brokers refuse a topic that is compacted (%v): %s keeps all fences",
		err, fence))
	return s.create(ctx, fence, partitions,
		append(others, Setting{"cleanup.policy", "delete", true},
			Setting{"retention.ms", "-1", true}, Setting{"retention.bytes", "-1", true}))
}

// classic makes a topic other than diskless (KIP-1150) where the input's setting tells that topics
// may be: a diskless one is not compacted, and takes no transactions.
func (s setup) classic() (list []Setting) {
	for _, key := range disklessSettings {
		if v := s.input[key]; v.own || v.value == "true" {
			list = append(list, Setting{key, "false", false})
		}
	}
	return list
}

const (
	headerRoom = 64 << 10
	// usualLimit is the default of max.message.bytes, for brokers that do not tell theirs.
	usualLimit = 1048588
)

func (s setup) client(topic string) *kgo.Client {
	return s.layout.clusters.Of(s.layout.topic, cmp.Or(s.beside, topic))
}

func (s setup) admin(topic string) *kadm.Client { return kadm.NewClient(s.client(topic)) }

// readInput reads what new topics take over from the input. What cannot be asked for they get from
// the brokers, which is told.
func (s *setup) readInput(ctx context.Context) (err error) {
	t, untold := s.layout.topic, error(nil)
	s.input, untold, err = orUntold(topicSettings(ctx, s.layout.clusters.Of(t, t.Input), t.Input))
	if untold != nil {
		s.say(fmt.Sprintf("%v: new topics get the brokers' defaults, not what %s has", untold,
			t.Input))
	}
	return err
}

func (s setup) place(topic string) string {
	return s.layout.clusters.place(s.layout.topic, cmp.Or(s.beside, topic))
}

type setup struct {
	layout layout
	beside string // what is made is on the cluster of this topic; empty: on its own
	dryRun bool
	say    func(string)
	input  map[string]setting
}

// Setting is one of a topic that is to be made. Where the brokers refuse one that is not required,
// as those of managed platforms do, the topic gets their default.
type Setting struct {
	Key, Value string
	Required   bool
}

// keepingAll are the settings of a topic that keeps what the input keeps, as long, and that takes
// records however late they come: their timestamps are those of the input.
func (s setup) keepingAll(limit int) []Setting {
	list := []Setting{{"max.message.bytes", strconv.Itoa(limit), false}}
	switch {
	case s.input["cleanup.policy"].value == "compact": // its records have no age at which they go
		list = append(list, Setting{"retention.ms", "-1", false})
	default:
		list = append(list, s.inherited("retention.ms", "retention.bytes")...)
	}
	list = append(list, s.inherited("min.insync.replicas", "message.timestamp.after.max.ms",
		"message.timestamp.difference.max.ms")...)
	if s.layout.topic.Delivery == config.DeliveryExactlyOnce {
		list = append(list, s.classic()...)
	} else {
		list = append(list, s.inherited(disklessSettings...)...)
	}
	if before := s.input["message.timestamp.before.max.ms"]; before.known() &&
		before.value != unlimited {
		list = append(list, Setting{"message.timestamp.before.max.ms", unlimited, false})
	}
	if kind := s.input["message.timestamp.type"]; kind.known() && kind.value != "CreateTime" &&
		!kind.own {
		// the brokers' default
		list = append(list, Setting{"message.timestamp.type", "CreateTime", false})
	}
	return list
}

const unlimited = "9223372036854775807"

// inherited are those of the input's settings that it does not have from the brokers: a new topic
// has theirs, too.
func (s setup) inherited(keys ...string) (list []Setting) {
	for _, key := range keys {
		if v := s.input[key]; v.own {
			list = append(list, Setting{key, v.value, false})
		}
	}
	return list
}

// create makes a topic with as many replicas as the input. Where the brokers refuse a setting that
// is not required, it goes on without it, and says so.
func (s setup) create(
	ctx context.Context, topic string, partitions int, values []Setting,
) error {
	if s.layout.exists(topic) {
		s.say("topic " + topic + " exists" + s.place(topic))
		return nil
	}
	replicas := s.layout.replicas(s.layout.topic.Input)
	for {
		err := s.createOnce(ctx, topic, partitions, replicas, values)
		if s.dryRun && (err == nil || isDenied(err)) {
			s.wouldCreate(topic, describeNew(topic, partitions, replicas, values), err)
			return nil
		}
		late := errors.Is(err, kerr.TopicAlreadyExists) // another setup runs, or ran just now
		if err != nil && !late {
			less, refused := without(err, &replicas, values)
			if refused == "" {
				return denied(fmt.Errorf("create topic %s%s: %w", topic, s.place(topic), err),
					"topic "+topic+s.place(topic), kmsg.ACLOperationCreate)
			}
			s.say(fmt.Sprintf("the brokers refuse %s for topic %s (%v): it gets their default",
				refused, topic, err))
			values = less
			continue
		}
		if late {
			partitions = 1 // its creator may have wanted another number
		}
		if err := s.waitVisible(ctx, topic, partitions); err != nil {
			return err
		}
		if late {
			s.say("topic " + topic + " exists" + s.place(topic))
		} else {
			s.say("created " + describeNew(topic, partitions, replicas, values) + s.place(topic))
		}
		return nil
	}
}

// wouldCreate says so, also to a user who only looks and may not create it.
func (s setup) wouldCreate(topic, description string, denied error) {
	line := "would create " + description + s.place(topic)
	if denied != nil {
		line += "; this user may not: " + denied.Error()
	}
	s.say(line)
}

func isDenied(err error) bool {
	return errors.Is(err, kerr.TopicAuthorizationFailed) ||
		errors.Is(err, kerr.ClusterAuthorizationFailed)
}

// createOnce returns an error with the brokers' own words. In a dry run they are only asked whether
// they would make the topic.
func (s setup) createOnce(
	ctx context.Context, topic string, partitions, replicas int, values []Setting,
) error {
	configs := make(map[string]*string)
	for _, v := range values {
		configs[v.Key] = &v.Value
	}
	create := s.admin(topic).CreateTopics
	if s.dryRun {
		create = s.admin(topic).ValidateCreateTopics
	}
	answers, err := create(ctx, int32(partitions), int16(replicas), configs, topic)
	answer := answers[topic]
	if err == nil {
		err = answer.Err
	}
	if err != nil && answer.ErrMessage != "" {
		return fmt.Errorf("%w: %s", err, answer.ErrMessage)
	}
	return err
}

// without returns the settings but for what the brokers refuse, and what that is; nothing if they
// refuse the topic itself.
func without(err error, replicas *int, values []Setting) (less []Setting, refused string) {
	if errors.Is(err, kerr.InvalidReplicationFactor) && *replicas > 0 {
		refused = fmt.Sprintf("%d replicas", *replicas)
		*replicas = -1
		return values, refused
	}
	if !refusesSetting(err) {
		return nil, ""
	}
	optional := func(v Setting) bool { return !v.Required }
	at := slices.IndexFunc(values, func(v Setting) bool {
		return optional(v) && strings.Contains(err.Error(), v.Key)
	})
	if at < 0 { // they do not say which
		at = slices.IndexFunc(values, optional)
	}
	if at < 0 {
		return nil, ""
	}
	refused = values[at].Key + "=" + values[at].Value
	return slices.Delete(slices.Clone(values), at, at+1), refused
}

// refusesSetting reports whether a topic is refused for one of its settings.
func refusesSetting(err error) bool {
	return errors.Is(err, kerr.InvalidConfig) || errors.Is(err, kerr.PolicyViolation) ||
		errors.Is(err, kerr.InvalidRequest)
}

func describeNew(topic string, partitions, replicas int, values []Setting) string {
	text := fmt.Sprintf("topic %s (%d partitions", topic, partitions)
	switch {
	case replicas == 1:
		text += ", 1 replica"
	case replicas > 0:
		text += fmt.Sprintf(", %d replicas", replicas)
	}
	for _, v := range values {
		text += ", " + v.Key + "=" + v.Value
	}
	return text + ")"
}

// waitVisible returns when the brokers tell of the topic and its leaders: they learn of it a little
// later than the controller that made it, and a start right after the setup would miss it.
func (s setup) waitVisible(ctx context.Context, topic string, partitions int) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		details, err := s.admin(topic).ListTopics(ctx, topic)
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
	return d.Err == nil && len(d.Partitions) >= partitions
}
