package command

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

// An application of the same group name has read most of the input: what it read would never be
// forwarded.
func TestAConsumerGroupOfAnotherProgramIsRefusedUntilItsOffsetsAreAdopted(t *testing.T) {
	_, brokers := testkit.FakeKafka(t, kfake.SeedTopics(1, "orders"))
	path := write(t, brokers, ordersTopic)
	if code, text := kdedup(t.Context(), "setup", "-c", path); code != 0 {
		t.Fatal(text)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, id := range []string{"a", "b", "c"} {
		if err := client.ProduceSync(
			t.Context(), &kgo.Record{Topic: "orders", Key: []byte(id)},
		).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	read := make(kadm.Offsets)
	read.AddOffset("orders", 0, 2, -1)
	if err := kadm.NewClient(client).CommitAllOffsets(
		t.Context(), "orders-dedup", read,
	); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"validate", "run"} {
		code, text := kdedup(t.Context(), command, "-c", path)
		if code != 1 || !strings.Contains(text, "topics[0]: the offsets are not kdedup's: "+
			"consumer group orders-dedup has offsets without a fence: orders[0] at 2") {
			t.Errorf("%s: exit code %d:\n%s", command, code, text)
		}
	}
	code, text := kdedup(t.Context(), "setup", "-c", path, "--skip-self-test", "--adopt-offsets")
	if code != 0 || !strings.Contains(text,
		"adopted offset 2 of orders[0] in consumer group orders-dedup") {
		t.Errorf("exit code %d:\n%s", code, text)
	}
	if code, text := kdedup(t.Context(), "validate", "-c", path); code != 0 {
		t.Error(text)
	}
	r := start(t, path)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	testkit.Eventually(t, time.Minute, "the third record is forwarded", func() bool {
		ends, err := kadm.NewClient(client).ListCommittedOffsets(ctx, "orders.clean")
		end, _ := ends.Lookup("orders.clean", 0)
		return err == nil && end.Offset > 0
	})
	if clean := strings.Count(
		get(t, r.url()+"/metrics"), `outcome="forwarded",topic="orders"} 1`,
	); clean != 1 {
		t.Errorf("not exactly one record was forwarded:\n%s", r.out.String())
	}
}
