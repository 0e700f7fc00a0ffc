package command

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

// commitAt has a group commit one offset of partition 0, and none of the others.
func commitAt(t *testing.T, brokers []string, group, topic string, at int64) {
	t.Helper()
	commit := make(kadm.Offsets)
	commit.AddOffset(topic, 0, at, -1)
	if err := kadm.NewClient(testkit.KafkaClient(t, brokers)).CommitAllOffsets(t.Context(), group,
		commit); err != nil {
		t.Fatal(err)
	}
}

// A consumer of the input goes on on the other cluster, in a group of that one, and comes back.
func TestAConsumerMovesToTheCleanTopicOfTheOtherClusterAndBack(t *testing.T) {
	for delivery, topic := range map[string]string{"exactly_once": exactApart,
		"at_least_once": apartTopic} {
		t.Run(delivery, func(t *testing.T) {
			input, output, path := setUpApartAs(t, topic)
			produceKeys(t, input, "orders", "a", "b", "b", "c", "d")
			runUntilRead(t, path, "forwarded", 4)
			const group = "billing"

			code, text := kdedup(t.Context(), "offsets", "-c", path, "--group", group)
			if code != 1 || !strings.Contains(text,
				"no offset of orders on the cluster of the input") {
				t.Errorf("without offsets: %d:\n%s", code, text)
			}
			commitAt(t, input, group, "orders", 3) // it has had a and b
			code, text = kdedup(t.Context(), "offsets", "-c", path, "--group", group)
			if got := offsetsOf(t, output, group, "orders.clean"); code != 0 || got != 0 {
				t.Errorf("without --apply: %d, offset %d:\n%s", code, got, text)
			}
			code, text = kdedup(t.Context(), "offsets", "-c", path, "--group", group, "--apply",
				"--yes")
			if got := offsetsOf(t, output, group, "orders.clean"); code != 0 || got != 2 ||
				!strings.Contains(text, "goes on on orders.clean on the cluster of kafka.output") {
				t.Errorf("there: %d, offset %d, want 2:\n%s", code, got, text)
			}
			if got := offsetsOf(t, input, group, "orders.clean"); got != 0 {
				t.Errorf("the input's cluster has the offset %d of the clean topic", got)
			}

			commitAt(t, output, group, "orders.clean", 3) // and c
			code, text = kdedup(t.Context(), "offsets", "-c", path, "--group", group, "--back",
				"--apply", "--yes")
			if got := offsetsOf(t, input, group, "orders"); code != 0 || got != 4 ||
				!strings.Contains(text, "goes on on orders on the cluster of the input") {
				t.Errorf("back: %d, offset %d, want 4:\n%s", code, got, text)
			}
		})
	}
}

// The group has the same name on both clusters, and works on the one to which it goes.
func TestAGroupThatWorksOnTheOtherClusterIsNotMovedThere(t *testing.T) {
	input, output, path := setUpApart(t)
	produceKeys(t, input, "orders", "a", "b")
	runUntilRead(t, path, "forwarded", 2)
	commitAt(t, input, "billing", "orders", 1)
	member := testkit.KafkaClient(t, output, kgo.ConsumerGroup("billing"),
		kgo.ConsumeTopics("orders.clean"), kgo.DisableAutoCommit())
	if fetches := member.PollFetches(t.Context()); fetches.Err() != nil {
		t.Fatal(fetches.Err())
	}
	code, text := kdedup(t.Context(), "offsets", "-c", path, "--group", "billing", "--apply",
		"--yes")
	if code != 1 || !strings.Contains(text, "on the cluster of kafka.output: stop its members") {
		t.Errorf("%d:\n%s", code, text)
	}
}
