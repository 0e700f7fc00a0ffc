package proposal

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A producer wrote its ID into a header, and since a release into a field. What validate would
// refuse by the newest records is not proposed, and says why.
func TestAPlaceThatTheNewestRecordsLackIsNotProposed(t *testing.T) {
	const records, after = 1000, 800
	sample := Sample{Topic: "orders"}
	for i := range records {
		id := fmt.Sprintf("6b3f1a0c-0000-4000-8000-%012d", i-i%10/9) // one of ten is a copy
		r := &kgo.Record{Topic: "orders", Partition: int32(i % 3), Offset: int64(i / 3),
			Timestamp: start.Add(time.Duration(i) * time.Second),
			Value:     fmt.Appendf(nil, `{"order_id":%q,"n":1}`, id)}
		if i < after {
			r.Headers = []kgo.RecordHeader{{Key: "message-id", Value: []byte(id)}}
		}
		sample.Records = append(sample.Records, r)
	}
	j := Judge(sample, start.Add(time.Hour), nil)
	for _, c := range j.Choices {
		if c.Places[0].From == "header" {
			t.Errorf("it proposes %s: %s", c, c.Seen())
		}
	}
	if len(j.Choices) == 0 || j.Choices[0].String() != "JSON field order_id" {
		t.Errorf("the choices are %v", j.Choices)
	}
	for _, c := range j.Refused {
		if c.Places[0].From == "header" && c.Refused == notLately {
			return
		}
	}
	t.Errorf("nothing says why the header is refused: %+v", j.Refused)
}

func TestTombstonesAtTheEndSayNothingOfAPlace(t *testing.T) {
	var records []*kgo.Record
	for i := range 300 {
		r := &kgo.Record{Offset: int64(i)}
		if i < 150 {
			r.Value = []byte("{}")
		}
		records = append(records, r)
	}
	if !lately(records, newest(records), func(int) bool { return false }) {
		t.Error("a hundred tombstones refuse a field of values")
	}
}
