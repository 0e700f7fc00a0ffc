package embedded

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kdedup/kdedup/dedup"
)

func TestRecordsRoundTrip(t *testing.T) {
	want := claimRecord{
		owner:       dedup.Coordinates{TopicID: [16]byte{0: 1, 15: 0xff}, Partition: math.MaxInt32, Offset: math.MaxInt64, LeaderEpoch: -1},
		fingerprint: dedup.Fingerprint{0: 9, 15: 8}, claimedAt: 1, expiresAt: math.MaxInt64,
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

func TestScopeKeysAreUnambiguous(t *testing.T) {
	for _, name := range []scopeName{{"a", "bc"}, {"ab", "c"}, {"", "abc"}, {"abc", ""}} {
		got, err := parseScopeKey(scopeKey(name))
		if err != nil || got != name {
			t.Errorf("%v became %v, %v", name, got, err)
		}
	}
}

// FuzzParse: whatever the files hold, reading it ends in a value or an error.
func FuzzParse(f *testing.F) {
	f.Add((&claimRecord{}).append(nil))
	f.Add(appendEnding(appendEnding(nil, []byte("a")), []byte("bc")))
	f.Add(scopeKey(scopeName{"group", "name"}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, err := parseRecord(data); err == nil {
			if diff := cmp.Diff(data, r.append(nil)); diff != "" {
				t.Error(diff)
			}
		}
		if keys, err := parseEndings(data); err == nil {
			var again []byte
			for _, key := range keys {
				again = appendEnding(again, key)
			}
			if len(again) > len(data) {
				t.Errorf("%x became %x", data, again)
			}
		}
		if len(data) > 0 {
			_, _ = parseScopeKey(data)
		}
	})
}
