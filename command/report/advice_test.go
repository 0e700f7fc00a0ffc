package report

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// copies puts an original a minute and its copy so much later, over a range.
func (t *topic) copies(over, late time.Duration) {
	for at := time.Duration(0); at+late <= over; at += time.Minute {
		id := strconv.Itoa(int(at / time.Minute))
		t.put(0, at, id, id)
	}
	for at := late; at <= over; at += time.Minute {
		id := strconv.Itoa(int((at - late) / time.Minute))
		t.put(1, at, id, id)
	}
}

func TestNoTTLIsAdvisedThatTheRangeDoesNotBear(t *testing.T) {
	for _, c := range []struct {
		name       string
		over, late time.Duration
		advised    bool
	}{
		{"four minutes", 4 * time.Minute, 30 * time.Second, false},
		{"copies as late as the range is long", 3 * time.Hour, 170 * time.Minute, false},
		{"a long range", 6 * time.Hour, 30 * time.Second, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var in topic
			in.copies(c.over, c.late)
			r := in.build(t, func(*Options) {})
			if r.Totals.Copies == 0 || (len(r.TTL.Advised) > 0) != c.advised ||
				r.TTL.Short == c.advised {
				t.Errorf("%d copies, advised %v, short %t", r.Totals.Copies, r.TTL.Advised,
					r.TTL.Short)
			}
		})
	}
}

// Nobody knows when such a record came. What follows must not seem to have come in one moment.
func TestAFirstRecordAheadOfTheClockMovesNoOther(t *testing.T) {
	var in topic
	in.put(0, 31*24*time.Hour, "ahead", "x")
	in.put(1, 31*24*time.Hour, "ahead too", "x")
	in.copies(6*time.Hour, 20*time.Minute)
	r := in.build(t, func(*Options) {})
	if len(r.TTL.Advised) == 0 || r.TTL.Advised[0].Seconds < (20*time.Minute).Seconds() {
		t.Errorf("advised %+v for copies that come 20 minutes late", r.TTL.Advised)
	}
}

func TestALagThatComesNearTheTTLIsTold(t *testing.T) {
	var in topic
	in.copies(2*time.Hour, time.Minute)
	r := in.build(t, func(o *Options) { o.Pipeline.OldUnread = []int32{3} })
	var table strings.Builder
	if err := r.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(table.String(),
		"partitions [3]: what the group has not read is older than half the ttl") {
		t.Error(table.String())
	}
}
