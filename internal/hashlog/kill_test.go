package hashlog

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/kdedup/kdedup/internal/testkit"
)

// writerEnv makes this test binary a process that writes in the given directory until it is killed.
const writerEnv = "KDEDUP_HASHLOG_WRITER"

const writerBatch = 20

// writeForever prints the number of every batch that was synced. Each ends later than the one
// before, and what has ended is dropped, so that there are files of all kinds at any moment.
func writeForever(dir string) {
	l, err := Open(dir, Options{SegmentBytes: small})
	for batch := 0; err == nil; batch++ {
		var b Batch
		for i := batch * writerBatch; i < (batch+1)*writerBatch; i++ {
			b.Put(keyOf(i), fmt.Appendf(nil, "%d until %d", i, batch), int64(batch))
		}
		err = writeBatch(l, &b, batch)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func writeBatch(l *Log, b *Batch, number int) error {
	mark, err := l.Append(context.Background(), b)
	if err == nil {
		err = l.Sync(context.Background(), mark)
	}
	if err != nil {
		return err
	}
	fmt.Println(number)
	_, err = l.Drop(context.Background(), int64(number-livingBatches))
	return err
}

const livingBatches = 100

// Whatever the process was at when it was killed (a new segment, an index, a merge, a drop), what
// it had synced is there.
func TestAKilledProcessLosesNothingThatWasSynced(t *testing.T) {
	for _, batches := range []int{1, 50, 130, 200, 260, 333, 400} {
		t.Run(fmt.Sprint(batches), func(t *testing.T) {
			dir := t.TempDir()
			last := testkit.KillAfter(t, writerEnv+"="+dir, batches)
			l := open(t, dir, Options{SegmentBytes: small})
			defer closeLog(t, l)
			for batch := max(0, last-livingBatches+1); batch <= last; batch++ {
				wantAll(t, l, batch*writerBatch, writerBatch, int64(batch))
			}
			put(t, l, 1_000_000, 500, 1000)
			wantAll(t, l, 1_000_000, 500, 1000)
		})
	}
}
