package kafka

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/internal/brokers"
)

// Comparison is what the topics that kdedup writes do with records that the input holds.
type Comparison struct {
	// a setting with which the pipeline loses records, or cannot go on, whatever they are
	Refused []string
	Told    []string // which records would be refused or lost
	Unknown error    // why the input's settings are not known; run needs no right to see them
}

// Compare looks at the settings of the topics that the pipeline writes, beside those of its input.
// All of them exist.
func Compare(ctx context.Context, clusters Clusters, t config.Topic) (Comparison, error) {
	l, err := describe(ctx, clusters, t)
	if err != nil {
		return Comparison{}, err
	}
	all, untold, err := orUntold(clusters.settings(ctx, t, names(t)[1:]))
	if err != nil {
		return Comparison{}, err
	}
	c := comparison{layout: l, all: all}
	if untold != nil {
		c.tell("%v: nothing is known of what it keeps and takes", untold)
	}
	// a right that run does not need
	if c.input, err = topicSettings(ctx, clusters.Of(t, t.Input), t.Input); err != nil {
		c.found.Unknown = fmt.Errorf("nothing is compared with the settings of %s: %w", t.Input,
			err)
	}
	for _, topic := range names(t)[1:] {
		c.durability(topic)
		if topic != t.FenceTopic {
			c.records(topic)
		}
	}
	c.width()
	c.fence()
	c.offsets()
	return c.found, c.idempotence(ctx)
}

type comparison struct {
	layout layout
	input  map[string]setting // nil if they are not known
	all    map[string]map[string]setting
	found  Comparison
}

func (c *comparison) tell(format string, args ...any) {
	c.found.Told = append(c.found.Told, fmt.Sprintf(format, args...))
}

func (c *comparison) refuse(format string, args ...any) {
	c.found.Refused = append(c.found.Refused, fmt.Sprintf(format, args...))
}

// width compares the numbers of partitions. Those of the input that have no counterpart wait.
func (c *comparison) width() {
	t := c.layout.topic
	input, output, fence := c.layout.partitions(t.Input), c.layout.partitions(t.Output),
		c.layout.partitions(t.FenceTopic)
	if t.Partitioner == config.PartitionerPreserve && output < input {
		c.tell("topic %s has %d partitions and %s has %d: records keep their partition number, so "+
			"those of the others wait: add partitions to %s or set partitioner: by_key",
			t.Output, output, t.Input, input, t.Output)
	}
	if t.Partitioner == config.PartitionerPreserve && output > input {
		c.tell("topic %s has %d partitions and %s has %d: records keep their partition number, so "+
			"the last %d get none from this entry", t.Output, output, t.Input, input, output-input)
	}
	if fence < input {
		c.tell("fence topic %s has %d partitions and %s has %d: kdedup adds them, if it may, or %s",
			t.FenceTopic, fence, t.Input, input, setupRemedy)
	}
}

// durability compares how many copies of a record there are.
func (c *comparison) durability(topic string) {
	input := c.layout.topic.Input
	replicas, there := c.layout.replicas(topic), c.layout.replicas(input)
	if replicas > 0 && replicas < there {
		c.tell("topic %s has %d of the %d replicas that %s has: what was forwarded is lost with "+
			"fewer disks than what came in",
			topic, replicas, there, input)
	}
	if least := c.number(topic, "min.insync.replicas"); replicas > 0 && least > int64(replicas) {
		c.refuse("topic %s has min.insync.replicas=%d and %d replicas: it takes no record", topic,
			least, replicas)
	}
}

// fence tells that a fence topic only grows, or may not keep its fences.
func (c *comparison) fence() {
	if _, told := c.all[c.layout.topic.FenceTopic]; !told {
		c.tell("see to it that fence topic %s is compacted, or that nothing is deleted from it: a "+
			"fence that is deleted makes a rewind forward twice", c.layout.topic.FenceTopic)
		return
	}
	if topic := c.layout.topic.FenceTopic; c.all[topic]["cleanup.policy"].value != "compact" {
		c.tell("fence topic %s is not compacted: it keeps a fence of each batch and partition for "+
			"ever (docs/recipes/brokers.md tells how to shorten it)", topic)
	}
}

// offsets tells of an input whose offsets may not be committed in a transaction.
func (c *comparison) offsets() {
	t := c.layout.topic
	if diskless(c.input) != "" && t.Delivery == config.DeliveryExactlyOnce {
		c.tell("topic %s is diskless: Inkless before 4.2.0-0.40 refuses its offsets in a "+
			"transaction (INVALID_TOPIC_EXCEPTION), and kdedup needs delivery: at_least_once there",
			t.Input)
	}
}

// idempotence tells that records may be written more than once without a crash.
func (c *comparison) idempotence(ctx context.Context) error {
	clients := []*kgo.Client{c.layout.clusters.Input}
	if c.layout.clusters.Apart() {
		clients = append(clients, c.layout.clusters.Output)
	}
	for _, client := range clients {
		idempotent, err := brokers.Idempotent(ctx, client)
		if err != nil {
			return err
		}
		if !idempotent {
			c.tell("the brokers have no idempotent producers: a record whose acknowledgement is " +
				"lost is written once more")
		}
	}
	return nil
}

// records tells which of the input's records the topic refuses, deletes or changes.
func (c *comparison) records(topic string) {
	t, own := c.layout.topic, c.all[topic]
	if strings.Contains(own["cleanup.policy"].value, "compact") {
		if topic == t.Output && !t.AllowCompactedOutput || topic != t.Output {
			c.refuse("topic %s has cleanup.policy=%s: of the messages of one key only the last "+
				"is kept, and records without a key are refused; "+
				"%s", topic, own["cleanup.policy"].value, compactedRemedy(topic == t.Output))
		}
	}
	if own["message.timestamp.type"].value == "LogAppendTime" {
		c.tell("topic %s has message.timestamp.type=LogAppendTime: records get the time at which "+
			"they are forwarded in place of their own", topic)
	}
	if before := c.number(topic, "message.timestamp.before.max.ms"); before >= 0 &&
		before < aCentury {
		c.tell("topic %s has message.timestamp.before.max.ms=%d: it refuses records that are "+
			"older than %s when they are forwarded",
			topic, before, millis(before))
	}
	if c.input == nil {
		return
	}
	if is, there := c.number(topic, "retention.ms"), c.retention(); is >= 0 &&
		(there < 0 || is < there) {
		c.tell("topic %s has retention.ms=%d, %s has %s: records older than %s are deleted as "+
			"soon as they are forwarded",
			topic, is, t.Input, c.input["retention.ms"].value, millis(is))
	}
	if after, there := c.number(topic, "message.timestamp.after.max.ms"),
		c.inputNumber("message.timestamp.after.max.ms"); after >= 0 && after < there {
		c.tell("topic %s has message.timestamp.after.max.ms=%d, less than %s: it refuses records "+
			"with a time more than %s ahead",
			topic, after, t.Input, millis(after))
	}
	if limit, there := c.number(topic, "max.message.bytes"),
		c.inputNumber("max.message.bytes"); limit >= 0 && limit < there {
		c.tell("topic %s has max.message.bytes=%d, %s has %d: it refuses records in between", topic,
			limit, t.Input, there)
	}
}

func compactedRemedy(output bool) string {
	if output {
		return "set cleanup.policy=delete, or allow_compacted_output: true if that is meant"
	}
	return "set cleanup.policy=delete"
}

// aCentury is longer than any record is old.
const aCentury = 100 * 365 * 24 * 60 * 60 * 1000

// retention of the input; -1 for ever, as long as its records are compacted only.
func (c *comparison) retention() int64 {
	if c.input["cleanup.policy"].value == "compact" {
		return -1
	}
	return c.inputNumber("retention.ms")
}

func (c *comparison) inputNumber(key string) int64   { return number(c.input[key]) }
func (c *comparison) number(topic, key string) int64 { return number(c.all[topic][key]) }

// number is -1 for a setting that is not known.
func number(s setting) int64 {
	n, err := strconv.ParseInt(s.value, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

func millis(n int64) string {
	d := time.Duration(n) * time.Millisecond
	if day := 24 * time.Hour; d >= day && d%day == 0 {
		return fmt.Sprintf("%d days", d/day)
	}
	return d.String()
}
