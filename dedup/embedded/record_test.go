package embedded

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kdedup/kdedup/dedup"
)

func TestRecordsRoundTrip(t *testing.T) {
	want := claimRecord{
		owner: dedup.Coordinates{TopicID: [16]byte{0: 1, 15: 0xff}, Partition: math.MaxInt32,
			Offset: math.MaxInt64, LeaderEpoch: -1},
		fingerprint: dedup.Fingerprint{0: 9, 15: 8}, claimedAt: math.MaxInt64,
	}
	data := want.append(nil)
	got, err := parseRecord(data)
	if err != nil || got != want || len(data) != recordBytes {
		t.Errorf("got %+v, %v from %d bytes", got, err, len(data))
	}
	data[0]++
	if _, err := parseRecord(data); err == nil {
		t.Error("an unknown version was read")
	}
}

// FuzzParse: whatever the files hold, reading it ends in a value or an error.
func FuzzParse(f *testing.F) {
	f.Add((&claimRecord{}).append(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, err := parseRecord(data); err == nil {
			if diff := cmp.Diff(data, r.append(nil)); diff != "" {
				t.Error(diff)
			}
		}
	})
}
