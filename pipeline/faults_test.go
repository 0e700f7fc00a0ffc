package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/consumer/client"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/memory"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/pipeline"
)

// orders makes n records with copies that cross partitions: about one in five is a copy.
func orders(n int, seed uint64) []*kgo.Record {
	random := rand.New(rand.NewPCG(seed, 0))
	records := make([]*kgo.Record, n)
	ids := 0
	for i := range records {
		id := ids
		if ids > 0 && random.IntN(5) == 0 {
			id = max(0, ids-1-random.IntN(300))
		} else {
			ids++
		}
		records[i] = message(random.IntN(partitions), fmt.Sprint("id-", id),
			fmt.Sprint("order ", id))
	}
	return records
}

// checkClean is the promise: every ID once, byte for byte a copy that was produced, and in each
// partition in the order of the input.
func (r *rig) checkClean(exactlyOnce bool) {
	r.t.Helper()
	in := r.read(input)
	ids := make(map[string]bool)
	for _, records := range in {
		for _, record := range records {
			ids[string(record.Headers[0].Value)] = true
		}
	}
	seen := make(map[string]int)
	for p, records := range r.read(output) {
		at := 0
		for i, record := range records {
			seen[string(record.Headers[0].Value)]++
			if !exactlyOnce {
				at = 0 // a repeated batch goes back
			}
			before := at
			for at < len(in[p]) && !same(in[p][at], record) {
				at++
			}
			if at == len(in[p]) {
				r.t.Fatalf("partition %d: %s, record %d at offset %d, is not a copy of the input "+
					"behind record %d of %d: its copies there are %v", p, record.Value, i,
					record.Offset, before, len(in[p]), placesOf(in, record))
			}
		}
	}
	for id := range ids {
		if n := seen[id]; n == 0 || n > 1 && exactlyOnce {
			r.t.Errorf("%s is %d times on the clean topic", id, n)
		}
	}
}

// placesOf lists where the input has copies of a record, as "partition:index".
func placesOf(in map[int32][]*kgo.Record, record *kgo.Record) (places []string) {
	for p, records := range in {
		for i, r := range records {
			if same(r, record) {
				places = append(places, fmt.Sprintf("%d:%d", p, i))
			}
		}
	}
	return places
}

func total(counts map[string]int) (sum int) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

func TestAmbiguousClaimsLoseAndDoubleNothing(t *testing.T) {
	deliveries(t, func(t *testing.T, r *rig) {
		random := rand.New(rand.NewPCG(1, 2))
		r.store = memory.New(memory.Options{Violation: t.Errorf,
			Faults: func(claims []dedup.Claim) memory.Fault {
				if random.IntN(2) == 0 {
					return memory.Fault{}
				}
				effects := make([]memory.Effect, len(claims))
				for i := range effects {
					effects[i] = []memory.Effect{memory.Answered, memory.NotApplied,
						memory.Unreported}[random.IntN(3)]
				}
				return memory.Fault{Effect: func(claim int) memory.Effect { return effects[claim] }}
			}})
		r.lanes = 1 // the faults' random source is not for several goroutines
		r.produce(orders(3000, 7)...)
		r.start("one")
		r.waitCommitted(3000)
		r.checkClean(true)
		if n := total(r.outcomes()); n != 3000 {
			t.Errorf("outcomes add up to %d", n)
		}
		if r.counter("kdedup_claims_ambiguous_total") == 0 {
			t.Error("no claim was ambiguous")
		}
	})
}

// failing makes chosen steps of a session fail.
type failing struct {
	pipeline.Session
	begin, commit func() error
}

// oneRefusal has the first batch given back.
type oneRefusal struct{ given bool }

func (o *oneRefusal) begin() error {
	if o.given {
		return nil
	}
	o.given = true
	return errors.New("no")
}

func (f *failing) Begin(ctx context.Context, b *consumer.Batch) error {
	if err := f.begin(); err != nil {
		return err
	}
	return f.Session.Begin(ctx, b)
}

func (f *failing) Commit(ctx context.Context, b *consumer.Batch) error {
	if err := f.commit(); err != nil {
		return err
	}
	return f.Session.Commit(ctx, b)
}

func sometimes(n int32, err error) func() error {
	var calls atomic.Int32
	return func() error {
		if calls.Add(1)%n == 0 {
			return err
		}
		return nil
	}
}

// The claims of a batch that is given back stand. Its records must find that they own their IDs,
// also when the next batch is cut differently.
func TestBatchesThatFailBeforeTheForwardAreRepeated(t *testing.T) {
	deliveries(t, func(t *testing.T, r *rig) {
		begin := sometimes(3, errors.New("no"))
		r.join = func(s pipeline.Session) pipeline.Session {
			return &failing{s, begin, func() error { return nil }}
		}
		r.batch = 77
		r.produce(orders(2000, 3)...)
		r.start("one")
		r.waitCommitted(2000)
		r.checkClean(true)
		if n := total(r.outcomes()); n != 2000 {
			t.Errorf("outcomes add up to %d", n)
		}
	})
}

// With exactly_once the forwards of a batch whose commit did not happen are invisible; with
// at_least_once they are repeated.
func TestBatchesThatFailBeforeTheCommitAreRepeated(t *testing.T) {
	deliveries(t, func(t *testing.T, r *rig) {
		commit := sometimes(4, errors.New("no"))
		r.join = func(s pipeline.Session) pipeline.Session {
			return &failing{s, func() error { return nil }, commit}
		}
		r.batch, r.lanes = 200, 1
		r.produce(orders(2000, 4)...)
		r.start("one")
		r.waitCommitted(2000)
		r.checkClean(r.transactional)
	})
}

func TestRebalancesInMidBatchLoseAndDoubleNothing(t *testing.T) {
	deliveries(t, func(t *testing.T, r *rig) {
		const n = 20_000
		r.batch = 100
		r.produce(orders(n, 5)...)
		r.start("one")
		for i := range 5 {
			guest := r.start(fmt.Sprint("guest-", i))
			testkit.Eventually(t, 30*time.Second, "the guest in the group", func() bool {
				return guest.Ready() == nil
			})
			if err := guest.stop(); err != nil {
				t.Error(err)
			}
		}
		r.waitCommitted(n)
		r.checkClean(true)
		if got := total(r.outcomes()); got != n {
			t.Errorf("outcomes add up to %d, want %d", got, n)
		}
	})
}

func TestARewoundGroupForwardsNothingTwice(t *testing.T) {
	deliveries(t, func(t *testing.T, r *rig) {
		const n = 500
		r.produce(orders(n, 6)...)
		if err := r.startAndFinish("one", n); err != nil {
			t.Error(err)
		}
		first := r.outcomes()
		r.rewind()
		r.produce(message(0, "new", "new"))
		r.start("one again")
		r.waitCommitted(n + 1)
		r.checkClean(true)
		again := r.outcomes()
		want := map[string]int{"forwarded": first["forwarded"] + 1, "replay": first["forwarded"],
			"duplicate": 2 * first["duplicate"]}
		if diff := cmp.Diff(want, again); diff != "" {
			t.Error(diff)
		}
		if r.counter("kdedup_rewinds_total") == 0 {
			t.Error("the rewind was not counted")
		}
	})
}

func TestARewoundGroupForwardsAgainIfToldTo(t *testing.T) {
	deliveries(t, func(t *testing.T, r *rig) {
		r.policy.OnReplay = pipeline.Forward
		r.produce(message(0, "a", "A"), message(1, "a", "A"), message(0, "b", "B"))
		if err := r.startAndFinish("one", 3); err != nil {
			t.Error(err)
		}
		before := r.texts(output)
		r.rewind()
		r.start("one again")
		r.waitCommitted(3)
		want := slices.Sorted(slices.Values(slices.Concat(before, before)))
		if diff := cmp.Diff(want, r.texts(output)); diff != "" {
			t.Error(diff)
		}
	})
}

func (r *rig) startAndFinish(instance string, n int64) error {
	r.t.Helper()
	run := r.start(instance)
	r.waitCommitted(n)
	return run.stop()
}

// rewind sets the group's offsets to the beginning, as an operator does.
func (r *rig) rewind() {
	r.t.Helper()
	offsets := make(kadm.Offsets)
	for p := range int32(partitions) {
		offsets.AddOffset(input, p, 0, -1)
	}
	if err := kadm.NewClient(r.client).CommitAllOffsets(r.t.Context(), group, offsets); err != nil {
		r.t.Fatal(err)
	}
}

// setOffset is what an operator does with kafka-consumer-groups --reset-offsets.
func (r *rig) setOffset(partition int32, offset int64) {
	r.t.Helper()
	to := make(kadm.Offsets)
	to.AddOffset(input, partition, offset, -1)
	if err := kadm.NewClient(r.client).CommitAllOffsets(r.t.Context(), group, to); err != nil {
		r.t.Fatal(err)
	}
}

// Offsets and fence move together. Offsets that are ahead were moved by somebody else, or a broker
// lost the markers of a transaction: what lies between was not forwarded.
func TestOffsetsThatWereMovedForwardSkipNothing(t *testing.T) {
	for _, accept := range []bool{false, true} {
		t.Run(fmt.Sprintf("accept=%t", accept), func(t *testing.T) {
			deliveries(t, func(t *testing.T, r *rig) {
				r.lanes = 1
				r.member = func(o *client.Options) { o.AcceptSkips = accept }
				r.produce(message(0, "a", "A"), message(1, "b", "B"))
				if err := r.startAndFinish("one", 2); err != nil {
					t.Fatal(err)
				}
				r.produce(message(0, "c", "skipped"), message(0, "d", "D"), message(1, "e", "E"))
				r.setOffset(0, 2)
				r.start("one again")
				want := []string{"0:A", "0:D", "0:skipped", "1:B", "1:E"}
				if accept {
					want = []string{"0:A", "0:D", "1:B", "1:E"}
				}
				r.waitOutcomes(len(want))
				if diff := cmp.Diff(want, r.texts(output)); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// outage is a store that can be switched off.
type outage struct {
	dedup.Claimer
	down atomic.Bool
}

func (o *outage) Claim(
	ctx context.Context, scope dedup.Scope, claims []dedup.Claim,
) ([]dedup.Answer, error) {
	if o.down.Load() {
		return make([]dedup.Answer, len(claims)), errors.New("no store")
	}
	return o.Claimer.Claim(ctx, scope, claims)
}

func TestALaneWaitsForTheStoreAndResumes(t *testing.T) {
	deliveries(t, func(t *testing.T, r *rig) {
		store := &outage{Claimer: r.store}
		store.down.Store(true)
		r.store = store
		r.produce(orders(500, 8)...)
		r.start("one")
		testkit.Eventually(t, 30*time.Second, "ambiguous claims", func() bool {
			return r.counter("kdedup_claims_ambiguous_total") > 0
		})
		if got := r.outcomes(); len(got) > 0 {
			t.Errorf("outcomes without a store: %v", got)
		}
		store.down.Store(false)
		r.waitCommitted(500)
		r.checkClean(true)
	})
}

func TestRecordsPassUnclaimedWhenTheOutageOutlastsItsGrace(t *testing.T) {
	deliveries(t, func(t *testing.T, r *rig) {
		store := &outage{Claimer: r.store}
		store.down.Store(true)
		r.store, r.retry.GiveUpAfter = store, 50*time.Millisecond
		r.produce(message(0, "a", "A"), message(0, "a", "A"))
		r.start("one")
		r.waitCommitted(2)
		if diff := cmp.Diff([]string{"0:A", "0:A"}, r.texts(output)); diff != "" {
			t.Error(diff)
		}
		checkHeaders(t, r.read(output)[0][1], map[string]string{"kdedup-verdict": "unclaimed"})
		if diff := cmp.Diff(map[string]int{"passed_through": 2}, r.outcomes()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestSeriesExistFromTheStart(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	r := newRig(t, brokers)
	r.start("one")
	families, err := r.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]int)
	for _, f := range families {
		found[f.GetName()] = len(f.GetMetric())
	}
	for name, series := range map[string]int{
		"kdedup_records_total": 7, "kdedup_verdicts_total": 10, "kdedup_batches_total": 3,
		"kdedup_lane_failures_total":      8,
		"kdedup_forward_duration_seconds": 1, "kdedup_commit_duration_seconds": 1,
		"kdedup_claim_duration_seconds": 1,
		"kdedup_records_in_flight":      2, "kdedup_lane_up": 2, "kdedup_claims_total": 3,
		"kdedup_claims_ambiguous_total": 1,
		"kdedup_store_blocked":          2, "kdedup_rebalances_total": 1, "kdedup_rewinds_total": 1,
		"kdedup_input_data_loss_total": 1,
	} {
		if found[name] != series {
			t.Errorf("%s has %d series, want %d (there are %v)", name, found[name], series,
				slices.Sorted(maps.Keys(found)))
		}
	}
}
