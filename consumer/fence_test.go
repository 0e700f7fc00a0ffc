package consumer

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestFenceCoversOnlyRecordsThatWereHandled(t *testing.T) {
	topic, other := [16]byte{1}, [16]byte{2}
	fence := Fence{TopicID: topic, Next: 100, LeaderEpoch: 5}
	cases := []struct {
		name    string
		fence   Fence
		topicID [16]byte
		offset  int64
		epoch   int32
		want    bool
	}{
		{"below, same epoch", fence, topic, 99, 5, true},
		{"below, earlier epoch", fence, topic, 0, 0, true},
		{"at the fence", fence, topic, 100, 5, false},
		{"an offset that was used again after an unclean election", fence, topic, 99, 6, false},
		{"a recreated topic", fence, other, 99, 5, false},
		{"a record without an epoch", fence, topic, 99, -1, false},
		{"no fence", Fence{}, [16]byte{}, 0, 0, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := c.fence.covers(c.topicID, &kgo.Record{Offset: c.offset, LeaderEpoch: c.epoch}); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestFenceRecordsRoundTrip(t *testing.T) {
	span := Span{Partition: 3, TopicID: [16]byte{0: 0xab, 15: 1}, First: 10, Next: 1 << 60, LeaderEpoch: 7}
	r := fenceRecord("fences", "orders", span)
	if r.Topic != "fences" || r.Partition != 3 || string(r.Key) != "orders" {
		t.Errorf("got %+v", r)
	}
	got, err := parseFence(r)
	if want := (Fence{TopicID: span.TopicID, Next: span.Next, LeaderEpoch: 7}); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestBrokenFencesNameTheirPlace(t *testing.T) {
	for value, want := range map[string]string{
		`{`:                                 "fence f[2]@9: unexpected end of JSON input",
		`{"topic_id":"00","next_offset":1}`: `fence f[2]@9: topic_id "00" is not 16 bytes in hex`,
		`{"topic_id":"zz000000000000000000000000000000","next_offset":1}`: `fence f[2]@9: topic_id "zz000000000000000000000000000000" is not 16 bytes in hex`,
		`{"topic_id":"0000000000000000000000000000000000","x":1}`:         `fence f[2]@9: topic_id "0000000000000000000000000000000000" is not 16 bytes in hex`,
	} {
		_, err := parseFence(&kgo.Record{Topic: "f", Partition: 2, Offset: 9, Value: []byte(value)})
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func FuzzParseFence(f *testing.F) {
	f.Add(fenceRecord("f", "t", Span{Next: 5}).Value)
	f.Fuzz(func(t *testing.T, value []byte) {
		fence, err := parseFence(&kgo.Record{Value: value})
		if err != nil {
			return
		}
		again, err := parseFence(fenceRecord("f", "t", Span{TopicID: fence.TopicID, Next: fence.Next, LeaderEpoch: fence.LeaderEpoch}))
		if err != nil || again != fence {
			t.Errorf("%+v became %+v, %v", fence, again, err)
		}
	})
}
