package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

// TestOdd is a trial by random reality: random topics, random records and a random life of the
// processes against the built binary on a real broker. A seed decides all of it:
//
//	make odd MINUTES=5 SEED=1
//
// What must hold: every committed record of the input is on exactly one of the clean topic, the
// duplicates topic and the dead-letter topic, or is a counted drop; order is kept; an ID is on the
// clean topic once; no partition stands still; the memory stays bounded. It plays rounds until the
// time is over, each with topics of its own. ODD_ROUND plays one alone.
func TestOdd(t *testing.T) {
	seed, length := uint64(testkit.Number(t, "ODD_SEED", 1)),
		time.Duration(testkit.Number(t, "ODD_SECONDS", 60))*time.Second
	brokers, limits := oddBroker(t, rand.New(rand.NewPCG(seed, 0)))
	first, alone := testkit.Number(t, "ODD_ROUND", 1), os.Getenv("ODD_ROUND") != ""
	for round, end := first, time.Now().Add(length); time.Now().Before(end); round++ {
		passed := t.Run(fmt.Sprintf("round %d", round), func(t *testing.T) {
			t.Logf("once more: make odd SEED=%d ROUND=%d", seed, round)
			o := newTrial(t, brokers, rand.New(rand.NewPCG(seed, uint64(round))))
			o.limits = limits
			o.play()
		})
		if !passed || alone {
			return
		}
	}
}

// trial is one round: a deployment on topics that exist already, as those of others do.
type trial struct {
	*deployment
	random *rand.Rand
	limits limits // of the broker

	partitions int32
	inputMax   int  // bytes of a batch that the input admits
	appendTime bool // the clean topic sets timestamps itself
	latest     bool // the pipeline begins at the end of what there is before its first start
	spellings  bool // producers spell the header in many ways

	serial int // of the last record
	early  int // that of the last one that start: latest leaves out

	deadLetter, duplicates string // topics; the last may be empty
}

func newTrial(t *testing.T, brokers []string, random *rand.Rand) *trial {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &trial{
		deployment: &deployment{
			t: t, brokers: brokers, client: client, admin: kadm.NewClient(client),
			delivery: one(random, exactlyOnce, atLeastOnce),
		},
		random: random, partitions: 1 + random.Int32N(4),
		latest: random.IntN(4) == 0, spellings: random.IntN(4) == 0,
	}
}

func one[T any](random *rand.Rand, of ...T) T { return of[random.IntN(len(of))] }

func (o *trial) chance(percent int) bool { return o.random.IntN(100) < percent }

// limits of records, as operators and platforms set them.
func (o *trial) settings() map[string]string {
	settings := make(map[string]string)
	if o.chance(50) {
		settings["max.message.bytes"] = one(o.random, "20000", "100000", "1048588", "3145728")
	}
	if o.chance(30) {
		settings["message.timestamp.before.max.ms"] = one(o.random, "3600000", "86400000")
	}
	if o.chance(50) {
		settings["message.timestamp.after.max.ms"] = one(o.random, "3600000", "9223372036854775807")
	}
	if o.chance(15) {
		settings["message.timestamp.type"] = "LogAppendTime"
	}
	return settings
}

// neverCleaned has a compacted topic keep all: the check reads it. Timestamps far apart would have
// segments end, and be cleaned, at once.
const neverCleaned = "1.0"

// setUp makes topics that exist already, as those of others do; setup makes what is left.
func (o *trial) setUp() {
	o.t.Helper()
	input := map[string]string{
		"max.message.bytes": one(o.random, "100000", "1048588", "3145728"), "retention.ms": "-1",
		"message.timestamp.before.max.ms": "9223372036854775807",
		"message.timestamp.after.max.ms":  "9223372036854775807",
	}
	if o.chance(20) {
		input["cleanup.policy"], input["min.cleanable.dirty.ratio"] = "compact", neverCleaned
	}
	fmt.Sscan(input["max.message.bytes"], &o.inputMax)
	o.input = testkit.Topic(o.t, o.brokers, "odd", o.partitions, input)
	o.group, o.deadLetter = o.input, o.input+".dlq"
	o.make(o.output(), o.partitions)
	o.make(o.deadLetter, 1+o.random.Int32N(2))
	if o.chance(50) {
		o.duplicates = o.input + ".duplicates"
		o.make(o.duplicates, 1+o.random.Int32N(3))
	}
	reads, name := fmt.Sprintf("%q", o.input), o.input
	if o.chance(25) {
		reads, name = fmt.Sprintf("{pattern: %q}", o.input), "{topic}"
	}
	start, headerCase, duplicates := "earliest", "exact", o.duplicates
	if o.latest {
		start = "latest"
	}
	if o.spellings {
		headerCase = "any"
	}
	if duplicates != "" {
		duplicates = name + ".duplicates"
	}
	store := o.t.TempDir()
	o.config = filepath.Join(o.t.TempDir(), "kdedup.yaml")
	o.t.Log(o.admitted(reads != fmt.Sprintf("%q", o.input), func(d demands) {
		text := fmt.Sprintf(`
kafka: {brokers: %q}
store: {type: embedded, embedded: {path: %q}}
server: {listen: "127.0.0.1:0"}
topics:
  - {input: %s, output: "%s.clean", dead_letter_topic: "%s.dlq", duplicates_topic: %q, consumer_group: %q,
     delivery: %s, start: %s, allow_compacted_output: true, %v,
     message_id: {from: header, name: message-id, header_case: %s}}
`, o.brokers, store, reads, name, name, duplicates, name, o.delivery, start, d, headerCase)
		o.t.Log(text)
		if err := os.WriteFile(o.config, []byte(text), 0o600); err != nil {
			o.t.Fatal(err)
		}
	}))
	o.command("setup", "--skip-self-test")
}

// make creates a topic with limits of its own.
func (o *trial) make(topic string, partitions int32) {
	o.t.Helper()
	settings := o.settings()
	if topic == o.output() && o.chance(20) {
		// The others are refused, this one is asked for below.
		settings["cleanup.policy"], settings["min.cleanable.dirty.ratio"] = "compact", neverCleaned
	}
	settings["retention.ms"] = "-1"
	o.appendTime = o.appendTime || topic == o.output() && settings["message.timestamp.type"] != ""
	configs := make(map[string]*string)
	var names []string
	for name, value := range settings {
		configs[name] = &value
		names = append(names, name+"="+value)
	}
	sort.Strings(names)
	o.t.Logf("%s: %d partitions, %s", strings.TrimPrefix(topic, o.input), partitions,
		strings.Join(names, " "))
	if _, err := o.admin.CreateTopic(o.t.Context(), partitions, 1, configs, topic); err != nil {
		o.t.Fatal(err)
	}
}
