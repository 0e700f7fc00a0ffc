package hashlog

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func TestALookUpSinceAPointFindsWhatWasAppendedBehindIt(t *testing.T) {
	random := rand.New(rand.NewPCG(rand.Uint64(), 0))
	log := open(t, t.TempDir(), Options{SegmentBytes: small, Disk: unsynced{}})
	defer closeLog(t, log)
	const keys, batches = 2000, 400
	points := make([]Point, batches)
	last := make(map[int]int) // by key: its last batch
	for batch := range batches {
		points[batch] = log.End()
		var b Batch
		for range 1 + random.IntN(20) {
			key := random.IntN(keys)
			b.Put(keyOf(key), fmt.Append(nil, batch), 1)
			last[key] = batch
		}
		appendAndSync(t, log, &b)
	}
	r := log.NewReader()
	for key := range keys {
		for _, batch := range []int{0, random.IntN(batches), batches - 1} {
			want := ""
			if n, found := last[key]; found && n >= batch {
				want = fmt.Sprint(n)
			}
			got, _, err := r.GetSince(keyOf(key), points[batch])
			if err != nil || string(got) != want {
				t.Fatalf("key %d since batch %d has %q, %v; want %q", key, batch, got, err, want)
			}
		}
	}
	if got, _, err := r.GetSince(keyOf(1), log.End()); got != nil || err != nil {
		t.Errorf("behind the end is %q, %v", got, err)
	}
}
