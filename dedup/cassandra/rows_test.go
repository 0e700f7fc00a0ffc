package cassandra

import (
	"bytes"
	"testing"
	"time"

	"github.com/gocql/gocql"

	"github.com/kdedup/kdedup/dedup"
)

// Values that were given back and borrowed again, by batches of other sizes, are those of the batch
// that has them now.
func TestRowsThatAreUsedAgainHoldTheirBatch(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_000)
	for _, n := range []int{3, 100, 1, 2, 100} {
		r := borrowRows(int32(n), n)
		claims := make([]dedup.Claim, n)
		for i := range claims {
			claims[i] = dedup.Claim{ID: dedup.ID([]byte{byte(n), byte(i)}),
				Owner: dedup.Coordinates{Offset: int64(i)}}
			r.bind(&claims[i], at)
		}
		if len(r.values) != 3*n {
			t.Fatalf("%d values for %d rows, want 3 for each", len(r.values), n)
		}
		for i, claim := range claims {
			wantBytes(t, r.values[3*i], []byte{0, 0, 0, byte(n)})
			wantBytes(t, r.values[3*i+1], []byte(claim.ID))
			wantBytes(t, r.values[3*i+2], appendOwner(nil, &claim, at))
		}
		r.giveBack()
	}
}

func wantBytes(t *testing.T, value any, want []byte) {
	t.Helper()
	got, err := value.(gocql.Marshaler).MarshalCQL(nil)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("bound %x (%v), want %x", got, err, want)
	}
}

func TestRowsThatWereGivenBackHoldNoIDs(t *testing.T) {
	r := borrowRows(1, 2)
	r.bind(&dedup.Claim{ID: "a"}, time.Time{})
	ids := r.ids
	r.giveBack()
	if ids[0] != "" {
		t.Errorf("the ID %q is still held, and with it the fetch that it is a part of", ids[0])
	}
}
