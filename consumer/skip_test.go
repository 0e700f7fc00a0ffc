package consumer

import (
	"errors"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// The other partitions go on where they are: the client does not know how far they were committed.
func TestOnlyThePartitionWhoseOffsetWasMovedGoesBack(t *testing.T) {
	booths(t, func(b *booth) {
		if err := b.commit(b.poll("one", "two")); err != nil {
			t.Fatal(err)
		}
		b.produce(1, "three")
		if err := b.commit(b.poll("three")); err != nil {
			t.Fatal(err)
		}
		b.produce(1, "skipped")
		b.Transactional.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{b.input: {1: {Epoch: -1, Offset: 2}}})
		b.assign(t.Context(), nil, map[string][]int32{b.input: {1}})
		b.produce(0, "four")
		if _, err := b.Poll(t.Context()); !errors.Is(err, ErrAborted) {
			t.Fatal(err)
		}
		var got []string
		for len(got) < 2 {
			batch, err := b.Poll(t.Context())
			if err == nil {
				err = b.commit(batch)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range batch.Records {
				got = append(got, string(r.Value))
			}
		}
		slices.Sort(got)
		if want := []string{"four", "skipped"}; !slices.Equal(got, want) {
			t.Errorf("polled %q, want %q", got, want)
		}
	})
}
