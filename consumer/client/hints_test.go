package client

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/internal/testkit"
)

// unheard are the events of a session that no test looks at.
type unheard struct{}

func (unheard) Assigned([]int32) {}
func (unheard) Revoked([]int32)  {}
func (unheard) Lost([]int32)     {}
func (unheard) Blocked()         {}

// The next owner of a partition may be stopped before it comes to tell where it begins. So whoever
// gives the partition away tells what it has committed, and of a transaction that ends later, too.
func TestTheInputsClusterIsToldOfAPartitionThatIsGivenAway(t *testing.T) {
	testkit.Kafkas(t, 1, func(t *testing.T, brokers []string) {
		client := testkit.KafkaClient(t, brokers)
		admin := kadm.NewClient(client)
		input := testkit.Topic(t, brokers, "orders", 2, nil)
		opts := optionsOf(t, brokers, input, "a member")
		opts.Input = input
		a := &apart{events: unheard{}, input: input, grouped: input, client: client,
			hints: newHints(admin, opts, "a mark"), owned: map[int32]bool{0: true, 1: true},
			committed: make(consumer.Offsets)}
		t.Cleanup(a.hints.stop)
		told := func(partition int32, want int64) {
			t.Helper()
			offsets, err := admin.FetchOffsets(t.Context(), opts.ConsumerGroup)
			if err != nil {
				t.Fatal(err)
			}
			if at, _ := offsets.Lookup(input, partition); at.At != want {
				t.Errorf("the cluster is told %d of partition %d, want %d", at.At, partition, want)
			}
		}

		a.hint(consumer.Offsets{0: {Epoch: 1, Offset: 5}, 1: {Epoch: 1, Offset: 6}})
		a.Revoked([]int32{0})
		told(0, 5)

		a.hint(consumer.Offsets{0: kgo.EpochOffset{Epoch: 1, Offset: 7}})
		told(0, 7)

		a.hint(consumer.Offsets{1: kgo.EpochOffset{Epoch: 1, Offset: 8}})
		a.hints.stop()
		told(1, 8)
	})
}
