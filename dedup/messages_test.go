package dedup

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestMessagesHaveTheCoordinatesOfTheirRecords(t *testing.T) {
	record := func(partition int32, offset int64) *kgo.Record {
		return &kgo.Record{Partition: partition, Offset: offset, LeaderEpoch: partition + 10}
	}
	marker := record(1, 7)
	marker.Attrs = kgo.NewRecordAttrs(kgo.RecordAttrsOpts{Transactional: true, Control: true})
	id := [16]byte{1}
	// Two brokers answered; one of them gave no topic ID.
	fetches := kgo.Fetches{
		{Topics: []kgo.FetchTopic{{Topic: "orders", TopicID: id, Partitions: []kgo.FetchPartition{
			{Partition: 1, Records: []*kgo.Record{record(1, 6), marker, record(1, 8)}},
		}}}},
		{Topics: []kgo.FetchTopic{{Topic: "orders", Partitions: []kgo.FetchPartition{
			{Partition: 0, Records: []*kgo.Record{record(0, 3)}},
		}}}},
	}
	var got []Coordinates
	for _, m := range Messages(fetches) {
		if m.Record.Partition != m.Owner.Partition || m.Record.Offset != m.Owner.Offset {
			t.Errorf("the owner of %+v is %+v", m.Record, m.Owner)
		}
		got = append(got, m.Owner)
	}
	want := []Coordinates{{id, 1, 6, 11}, {id, 1, 8, 11}, {id, 0, 3, 10}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
