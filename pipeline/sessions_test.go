package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/pipeline"
)

// failingProduce reports a failure for one record that was in fact never sent.
type failingProduce struct {
	pipeline.Session
	fail func() error
}

func (f *failingProduce) Produce(
	ctx context.Context, r *kgo.Record, promise func(*kgo.Record, error),
) {
	if err := f.fail(); err != nil {
		promise(r, err)
		return
	}
	f.Session.Produce(ctx, r, promise)
}

// The client would commit a transaction of which one record was not written, and offsets with it.
func TestAFailedProduceAbortsItsBatch(t *testing.T) {
	deliveries(t, func(t *testing.T, r *rig) {
		fail := sometimes(300, errors.New("not written"))
		r.join = func(s pipeline.Session) pipeline.Session { return &failingProduce{s, fail} }
		r.batch, r.lanes = 100, 1
		r.produce(orders(2000, 9)...)
		r.start("one")
		r.waitCommitted(2000)
		r.checkClean(r.transactional)
		if r.counter("kdedup_lane_failures_total") == 0 {
			t.Error("no produce failed")
		}
	})
}

// A batch that a rebalance takes back is delivered again on the same session.
func TestABatchThatIsGivenBackIsReadAgain(t *testing.T) {
	deliveries(t, func(t *testing.T, r *rig) {
		begin := sometimes(2, consumer.ErrRevoked)
		r.join = func(s pipeline.Session) pipeline.Session {
			return &failing{s, begin, func() error { return nil }}
		}
		r.batch, r.lanes = 100, 1
		r.produce(orders(1000, 10)...)
		r.start("one")
		r.waitCommitted(1000)
		r.checkClean(true)
		if n := r.counter("kdedup_lane_failures_total"); n > 0 {
			t.Errorf("the lane joined again %v times", n)
		}
		if n := r.counter("kdedup_batches_total", "result", "aborted"); n == 0 {
			t.Error("no batch was given back")
		}
	})
}

// A claim by a record of an aborted transaction would make the real one a duplicate: a loss.
func TestAbortedInputClaimsNothing(t *testing.T) {
	deliveries(t, func(t *testing.T, r *rig) {
		client, err := kgo.NewClient(append(slices.Clip(r.admin), kgo.TransactionalID("shop"),
			kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		transaction := func(end kgo.TransactionEndTry, record *kgo.Record) {
			t.Helper()
			if err := client.BeginTransaction(); err != nil {
				t.Fatal(err)
			}
			if err := client.ProduceSync(t.Context(), record).FirstErr(); err != nil {
				t.Fatal(err)
			}
			if err := client.EndTransaction(t.Context(), end); err != nil {
				t.Fatal(err)
			}
		}
		transaction(kgo.TryAbort, message(0, "a", "aborted"))
		// behind it, in every order of partitions
		transaction(kgo.TryCommit, message(0, "a", "real"))
		r.produce(message(1, "b", "B"))
		r.start("one")
		r.waitOutcomes(2)
		if diff := cmp.Diff([]string{"0:real", "1:B"}, r.texts(output)); diff != "" {
			t.Error(diff)
		}
	})
}

// waitOutcomes waits until that many records are committed. The offsets would tell less: they count
// what stands between the records as well.
func (r *rig) waitOutcomes(n int) {
	r.t.Helper()
	testkit.Eventually(r.t, 30*time.Second, fmt.Sprintf("%d outcomes", n), func() bool {
		return total(r.outcomes()) >= n
	})
}
