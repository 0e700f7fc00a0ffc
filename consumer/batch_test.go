package consumer

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A lane that polled a batch just before its partitions were taken must not begin to claim it.
func TestWorkOnABatchThatIsTakenAwayEndsBeforeItBegins(t *testing.T) {
	revoked, revoke := context.WithCancelCause(t.Context())
	revoke(ErrRevoked)
	b := &Batch{revoked: revoked}
	for range 1000 { // that it ends soon after is not enough
		work, end := b.Context(t.Context())
		if !errors.Is(context.Cause(work), ErrRevoked) {
			t.Fatalf("the work goes on: %v", context.Cause(work))
		}
		end()
	}
}

// Nobody has looked whether such a partition has a counterpart in the fence topic. The others of
// the poll go on.
func TestRecordsOfAPartitionThatWasTakenAwayAreInNoBatch(t *testing.T) {
	m := memberOf(t, 0)
	groupEvents{m}.Assigned([]int32{1, 2})
	m.drop("partitions revoked", []int32{0, 1})
	groupEvents{m}.Assigned([]int32{0})
	var polled []kgo.FetchPartition
	for p := range int32(4) {
		polled = append(polled, kgo.FetchPartition{Partition: p,
			Records: []*kgo.Record{{Partition: p}}})
	}
	fetches := kgo.Fetches{{Topics: []kgo.FetchTopic{{Partitions: polled}}}}
	m.disown(fetches)
	var left []int32
	fetches.EachRecord(func(r *kgo.Record) { left = append(left, r.Partition) })
	if want := []int32{0, 2}; !slices.Equal(left, want) {
		t.Errorf("records of %v are left, want %v: 0 came back, 1 did not, 3 never was its own",
			left, want)
	}
}
