package backfill

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/connect/logreader"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/dryrun"
	"github.com/kdedup/kdedup/dedup/memory"
	"github.com/kdedup/kdedup/dedup/messageid"
	"github.com/kdedup/kdedup/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a clean topic and the store of its pipeline.
type rig struct {
	t       *testing.T
	brokers []string
	client  *kgo.Client
	clean   string
	store   *memory.Store
	now     time.Time
	faults  memory.Faults
}

var inputID = [16]byte{1, 2, 3}

var scope = dedup.Scope{ConsumerGroup: "orders-dedup", Name: "orders", TTL: time.Hour, Buckets: 4,
	Extractor: "key"}

func newRig(t *testing.T, opts ...kfake.Opt) *rig {
	t.Helper()
	_, brokers := testkit.FakeKafka(t, opts...)
	r := &rig{t: t, brokers: brokers, clean: testkit.Topic(t, brokers, "clean", 2, nil),
		now: time.Now()}
	r.store = memory.New(memory.Options{
		Now: func() time.Time { return r.now }, Violation: t.Errorf,
		Faults: func(claims []dedup.Claim) memory.Fault {
			if r.faults == nil {
				return memory.Fault{}
			}
			return r.faults(claims)
		},
	})
	r.client = r.newClient()
	return r
}

func (r *rig) newClient(opts ...kgo.Opt) *kgo.Client {
	r.t.Helper()
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(r.brokers...),
		kgo.RecordPartitioner(kgo.ManualPartitioner())}, opts...)...)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(client.Close)
	return client
}

func (r *rig) emit(client *kgo.Client, partition int32, ids ...string) {
	r.t.Helper()
	for _, id := range ids {
		record := &kgo.Record{Topic: r.clean, Partition: partition, Value: []byte("v")}
		if id != "" {
			record.Key = []byte(id)
		}
		if err := client.ProduceSync(r.t.Context(), record).FirstErr(); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *rig) deduper(claimer dedup.Claimer) *dedup.Deduper {
	r.t.Helper()
	extractor, err := messageid.New(messageid.Source{From: "key"})
	if err != nil {
		r.t.Fatal(err)
	}
	retry := dedup.Retry{First: time.Millisecond, Max: time.Millisecond}
	return dedup.New(scope, claimer, dedup.Options{Extractor: extractor, Retry: retry})
}

func (r *rig) options(claimer dedup.Claimer) Options {
	r.t.Helper()
	log, err := logreader.Describe(r.t.Context(), r.client, r.clean, logreader.Bounds{})
	if err != nil {
		r.t.Fatal(err)
	}
	return Options{Connection: []kgo.Opt{kgo.SeedBrokers(r.brokers...)}, Clean: log,
		Judge: r.deduper(claimer), BatchRecords: 3}
}

func (r *rig) run(claimer dedup.Claimer, want Counts) {
	r.t.Helper()
	got, err := Run(r.t.Context(), r.options(claimer))
	if err != nil {
		r.t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		r.t.Errorf("counts -want +got:\n%s", diff)
	}
}

// judge is what a lane does with a record of the input; everything below offset 1000 is below the
// fence.
func (r *rig) judge(id string, partition int32, offset int64) dedup.Verdict {
	r.t.Helper()
	message := dedup.Message{
		Record:  &kgo.Record{Key: []byte(id), Value: []byte("v")},
		Owner:   dedup.Coordinates{TopicID: inputID, Partition: partition, Offset: offset},
		Settled: r.now.Add(time.Minute),
	}
	if offset >= 1000 {
		message.Settled = time.Time{}
	}
	judgements, err := r.deduper(r.store).Judge(r.t.Context(), []dedup.Message{message})
	if err != nil {
		r.t.Fatal(err)
	}
	return judgements[0].Verdict
}

func (r *rig) wantVerdict(want dedup.Verdict, id string, partition int32, offset int64) {
	r.t.Helper()
	if got := r.judge(id, partition, offset); got != want {
		r.t.Errorf("%s at %d@%d of the input is judged %v, want %v", id, partition, offset, got,
			want)
	}
}

// The clean topic has the input's partitions and often its offsets, so that a record of the input
// may stand at the very place of the one that owns its ID.
func TestNoRecordOfTheInputOwnsABackfilledID(t *testing.T) {
	r := newRig(t)
	r.emit(r.client, 0, "a", "b")
	r.emit(r.client, 1, "c")
	r.run(r.store, Counts{Records: 3, Claimed: 3})
	r.wantVerdict(dedup.VerdictDuplicate, "a", 0, 0)
	r.wantVerdict(dedup.VerdictDuplicate, "b", 0, 1)
	r.wantVerdict(dedup.VerdictDuplicate, "c", 1, 1000)
	r.wantVerdict(dedup.VerdictFirst, "d", 1, 1001)
}

func TestASecondRunChangesNothing(t *testing.T) {
	r := newRig(t)
	r.emit(r.client, 0, "a", "b", "a", "", "c")
	r.run(r.store, Counts{Records: 5, Claimed: 3, Copies: 1, Missing: 1})
	r.now = r.now.Add(59 * time.Minute)
	r.run(r.store, Counts{Records: 5, Earlier: 3, Copies: 1, Missing: 1})
	r.emit(r.client, 1, "d", "b")
	r.run(r.store, Counts{Records: 7, Earlier: 3, Claimed: 1, Copies: 2, Missing: 1})
	r.now = r.now.Add(2 * time.Minute) // a run does not prolong the claims of the one before it
	r.wantVerdict(dedup.VerdictFirst, "a", 0, 1000)
	r.wantVerdict(dedup.VerdictDuplicate, "d", 0, 1001)
}

func TestAnInterruptedRunGoesOnWhereItWas(t *testing.T) {
	r := newRig(t)
	for i := range 30 {
		r.emit(r.client, int32(i%2), fmt.Sprint("id-", i))
	}
	ctx, interrupt := context.WithCancel(t.Context())
	o := r.options(r.store)
	o.Progress = func(done, total int64) {
		if done >= 10 && total == 30 {
			interrupt()
		}
	}
	first, err := Run(ctx, o)
	if !errors.Is(err, context.Canceled) || first.Claimed < 10 || first.Claimed >= 30 ||
		first.Claimed != first.Records {
		t.Fatalf("%+v, %v", first, err)
	}
	r.run(r.store, Counts{Records: 30, Earlier: first.Claimed, Claimed: 30 - first.Claimed})
}

// A claim by a record that is not on the clean topic for good would make the real one a duplicate.
func TestWhatIsNotCommittedClaimsNothing(t *testing.T) {
	r := newRig(t)
	forwarder := r.newClient(kgo.TransactionalID("forwarder"))
	begin := func(id string) {
		t.Helper()
		if err := forwarder.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		r.emit(forwarder, 0, id)
	}
	end := func(how kgo.TransactionEndTry) {
		t.Helper()
		if err := forwarder.EndTransaction(t.Context(), how); err != nil {
			t.Fatal(err)
		}
	}
	begin("aborted")
	end(kgo.TryAbort)
	begin("committed")
	end(kgo.TryCommit)
	begin("open")
	r.run(r.store, Counts{Records: 1, Claimed: 1})
	end(kgo.TryAbort)
	r.wantVerdict(dedup.VerdictFirst, "aborted", 0, 1000)
	r.wantVerdict(dedup.VerdictFirst, "open", 0, 1001)
	r.wantVerdict(dedup.VerdictDuplicate, "committed", 0, 1002)
}

// A lane has claimed and not forwarded when the backfill comes to the ID; whatever becomes of the
// batch, its record stays the owner and is forwarded.
func TestAClaimOfALaneStaysTheLanes(t *testing.T) {
	r := newRig(t)
	r.wantVerdict(dedup.VerdictFirst, "emitted before", 0, 2000)
	r.emit(r.client, 0, "emitted before", "other")
	r.run(r.store, Counts{Records: 2, Claimed: 1, Taken: 1})
	r.wantVerdict(dedup.VerdictMine, "emitted before", 0, 2000)
	r.wantVerdict(dedup.VerdictDuplicate, "emitted before", 1, 2001)
}

// With at_least_once a record is on the clean topic before its batch is committed. If its claim has
// ended or was never made, the backfill owns the ID, and the repeat of the batch is dropped: it is
// there.
func TestWhatALaneForwardedAndDidNotCommitIsThere(t *testing.T) {
	r := newRig(t)
	r.wantVerdict(dedup.VerdictFirst, "a", 0, 2000)
	r.emit(r.client, 0, "a")
	r.now = r.now.Add(2 * time.Hour)
	r.run(r.store, Counts{Records: 1, Claimed: 1})
	r.wantVerdict(dedup.VerdictDuplicate, "a", 0, 2000)
}

func TestUndecidedClaimsAreMadeAgain(t *testing.T) {
	r := newRig(t)
	r.now = r.now.Add(time.Minute) // after the run began
	calls := 0
	r.faults = func([]dedup.Claim) memory.Fault {
		if calls++; calls%3 == 0 {
			return memory.Fault{}
		}
		return memory.Fault{Effect: func(i int) memory.Effect {
			return []memory.Effect{memory.NotApplied, memory.Unreported}[i%2]
		}}
	}
	r.emit(r.client, 0, "a", "b", "c", "d")
	r.run(r.store, Counts{Records: 4, Claimed: 4})
	if calls < 3 {
		t.Errorf("%d calls: nothing was undecided", calls)
	}
}

func TestADryRunClaimsNothing(t *testing.T) {
	r := newRig(t)
	r.wantVerdict(dedup.VerdictFirst, "b", 0, 2000)
	r.emit(r.client, 0, "a", "b", "", "a")
	r.run(dryrun.Claimer{Store: r.store}, Counts{Records: 4, Claimed: 2, Taken: 1, Missing: 1})
	r.wantVerdict(dedup.VerdictFirst, "a", 0, 2001)
}

func TestBrokersWithoutTopicIDsAreRefused(t *testing.T) {
	_, err := Run(t.Context(), Options{Clean: logreader.Log{Topic: "orders.clean"}})
	if !errors.Is(err, errNoTopicIDs) {
		t.Errorf("got %v", err)
	}
}
