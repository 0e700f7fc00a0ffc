package command

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTheRateOfEachTenth(t *testing.T) {
	begun := time.Now()
	batch := func(claims int64, ended time.Duration) claimedBatch {
		return claimedBatch{claims: claims, ended: begun.Add(ended)}
	}
	var even []claimedBatch
	for i := range 20 {
		even = append(even, batch(5, time.Duration(i+1)*time.Second))
	}
	for name, c := range map[string]struct {
		batches []claimedBatch
		want    []int64
	}{
		"two batches a tenth": {even, []int64{5, 5, 5, 5, 5, 5, 5, 5, 5, 5}},
		"slower and slower": {[]claimedBatch{batch(50, time.Second), batch(30, 2*time.Second),
			batch(20, 4*time.Second)}, []int64{50, 30, 10}},
		"one batch":           {[]claimedBatch{batch(100, 4*time.Second)}, []int64{25}},
		"a clock that stands": {[]claimedBatch{batch(100, 0)}, []int64{100_000_000_000}},
		"none":                {nil, nil},
	} {
		if diff := cmp.Diff(c.want, tenths(begun, c.batches, 100)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}
