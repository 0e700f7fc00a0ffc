package e2e_test

import (
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

// A consumer of the input stops at any offsets, goes on on the clean topic, stops there, and goes
// back: it has every message, and none twice on the way there.
func TestAConsumerMovesToTheCleanTopicAndBack(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]place{"rows": realServers(t),
		"a claim log": onClaimLog(t, "files")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			movesAndBack(t, at)
		})
	}
}

func movesAndBack(t *testing.T, at place) {
	d := deployAt(t, at, exactlyOnce, "batch_records: 500")
	d.produce(20_000, 40)
	process := d.start("one")
	d.waitFor(0.4)
	random := rand.New(rand.NewPCG(40, 1))
	group := d.input + "-billing"
	left := d.commitAnywhere(group, d.input, random)

	commands := d.rolloutCommands(group)
	if len(commands) != 4 {
		t.Fatalf("docs/rollout.md has the commands %q", commands)
	}
	d.command(commands[0]...)
	if now := d.committedBy(group, d.output()); len(now) > 0 {
		t.Fatalf("without --apply the group has the offsets %v", now)
	}
	d.waitFor(1) // kdedup goes on meanwhile
	d.command(commands[1]...)
	there := d.committedBy(group, d.output())
	d.mustHaveEach(left, there)

	back := d.commitAnywhere(group, d.output(), random)
	d.command(commands[2]...)
	d.command(commands[3]...)
	d.mustHaveAgain(back, d.committedBy(group, d.input))

	member := testkit.KafkaClient(t, d.brokers, kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(d.input))
	if fetches := member.PollFetches(t.Context()); fetches.Err() != nil {
		t.Fatal(fetches.Err())
	}
	if line, _ := d.refused("offsets", "--group", group, "--apply", "--yes"); !strings.Contains(
		line, "stop its members") {
		t.Errorf("for a group that works it says %q", line)
	}
	process.stop()
}

var offsetsCommand = regexp.MustCompile(`(?m)^kdedup (offsets .*)$`)

// rolloutCommands are those of docs/rollout.md, for another group.
func (d *deployment) rolloutCommands(group string) (commands [][]string) {
	d.t.Helper()
	text, err := os.ReadFile("../docs/rollout.md")
	if err != nil {
		d.t.Fatal(err)
	}
	for _, found := range offsetsCommand.FindAllSubmatch(text, -1) {
		line := strings.NewReplacer("-c kdedup.yaml ", "", " billing", " "+group).
			Replace(string(found[1]))
		commands = append(commands, strings.Fields(line))
	}
	return commands
}

// commitAnywhere has the group commit one offset of each partition, the least and the end among
// them.
func (d *deployment) commitAnywhere(group, topic string, random *rand.Rand) map[int32]int64 {
	d.t.Helper()
	ends, err := d.admin.ListCommittedOffsets(d.t.Context(), topic)
	if err != nil {
		d.t.Fatal(err)
	}
	commit, committed := make(kadm.Offsets), make(map[int32]int64)
	for p, end := range ends[topic] {
		switch p {
		case 0:
			committed[p] = 0
		case 1:
			committed[p] = end.Offset
		default:
			committed[p] = random.Int64N(end.Offset + 1)
		}
		commit.AddOffset(topic, p, committed[p], -1)
	}
	if err := d.admin.CommitAllOffsets(d.t.Context(), group, commit); err != nil {
		d.t.Fatal(err)
	}
	return committed
}

func (d *deployment) committedBy(group, topic string) map[int32]int64 {
	d.t.Helper()
	answers, err := d.admin.FetchOffsetsForTopics(d.t.Context(), group, topic)
	if err != nil {
		d.t.Fatal(err)
	}
	committed := make(map[int32]int64)
	for p, o := range answers[topic] {
		if o.At >= 0 {
			committed[p] = o.At
		}
	}
	return committed
}

// mustHaveEach wants, in each partition, every message once: those whose first record on the input
// lies below the offset there, and those of the clean topic from the offset on.
func (d *deployment) mustHaveEach(input, clean map[int32]int64) {
	d.t.Helper()
	d.waitStable(d.output())
	in, out := d.records(d.input), d.records(d.output())
	for p, records := range out {
		first := firstOffsets(in[p])
		for _, r := range records {
			source := first[idOf(r)]
			if had, comes := source < input[p], r.Offset >= clean[p]; had == comes {
				d.t.Fatalf("partition %d, from %d to %d: the message of %d, at %d on the clean "+
					"topic: had %v, comes %v", p, input[p], clean[p], source, r.Offset, had, comes)
			}
		}
	}
}

// mustHaveAgain wants that what the consumer of the clean topic has not had comes on the input, and
// of what it has had only copies that were dropped.
func (d *deployment) mustHaveAgain(clean, input map[int32]int64) {
	d.t.Helper()
	in, out := d.records(d.input), d.records(d.output())
	for p, records := range out {
		first := firstOffsets(in[p])
		for _, r := range records {
			source := first[idOf(r)]
			if had, comes := r.Offset < clean[p], source >= input[p]; had == comes {
				d.t.Fatalf("partition %d, from %d back to %d: the message of %d, at %d on the "+
					"clean topic: had %v, comes %v", p, clean[p], input[p], source, r.Offset, had,
					comes)
			}
		}
	}
}

// firstOffsets are those of the first record of each message in a partition. If it is forwarded
// from there, that is the record which is.
func firstOffsets(records []*kgo.Record) map[string]int64 {
	first := make(map[string]int64)
	for _, r := range records {
		if _, known := first[idOf(r)]; !known {
			first[idOf(r)] = r.Offset
		}
	}
	return first
}

func idOf(r *kgo.Record) string { return string(r.Headers[1].Value) }
