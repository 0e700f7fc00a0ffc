package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/lab/workload"
)

func newBenchClaims() *cobra.Command {
	var (
		flags       benchFlags
		ids, before int
	)
	cmd := &cobra.Command{
		Use:   "claims",
		Short: "Measure the store alone",
		Long: "Claim IDs from as many lanes and in as large batches as the topic's settings say. " +
			"If the store does not\n" +
			"answer a batch, or leaves it undecided, the lane claims it again, ten times at most.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			c, log, err := flags.settings(cmd)
			if err != nil {
				return err
			}
			if ids < 1 {
				return usageError{fmt.Errorf("--ids must be at least 1, got %d", ids)}
			}
			if before < 0 {
				return usageError{fmt.Errorf("--before must be at least 0, got %d", before)}
			}
			remove, err := flags.claimLogs(cmd.Context(), &c, log)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, cleanUp(cmd.Context(), remove)) }()
			topic := c.Topics[0]
			c.Topics[0].Input = flags.own.Input // which is there
			lanes, keepers := flags.processesOf(c)
			stores, err := openStores(cmd.Context(), append(lanes, keepers...), log)
			if err != nil {
				return err
			}
			bench := &claimBench{
				stores: stores, askers: len(lanes), topic: topic,
				before: int64(before), ids: int64(ids),
				duplicates: flags.duplicates,
				spec:       workload.Spec{IDBytes: workload.UUIDBytes, Ordered: flags.ordered},
			}
			results, err := bench.run(cmd.Context(), cmd.ErrOrStderr(), flags.measure,
				func(scope dedup.Scope) ([]result, error) {
					return bench.reread(cmd.Context(), scope, log)
				})
			if err := errors.Join(err, closeStores(bench.stores)); err != nil {
				return err
			}
			results = append(results, flags.advise(cmd.Context(), c, log, bench.rate)...)
			return flags.print(cmd.OutOrStdout(), results)
		},
	}
	flags.add(cmd)
	cmd.Flags().IntVar(&ids, "ids", 1_000_000, "`NUMBER` of claims")
	cmd.Flags().IntVar(&before, "before", 0, "`NUMBER` of claims to make first, which do not "+
		"count: a full store may be slower than a new one")
	return cmd
}

// claimBench measures one scope of its own.
type claimBench struct {
	stores      []*benchStore // of the processes with lanes, and behind them of keepers without
	askers      int           // how many have lanes
	topic       config.Topic
	before, ids int64 // claims that are made first, and those that are measured
	duplicates  float64
	spec        workload.Spec // makes the IDs
	rate        float64       // claims a second, once it has run

	next, end atomic.Int64 // the next claim to hand out, and where this part ends
	applied   atomic.Int64
	again     atomic.Int64 // batches that were claimed again
	mu        sync.Mutex
	batches   []claimedBatch // in the order in which they ended
}

type claimedBatch struct {
	claims int64
	took   time.Duration
	ended  time.Time
}

// run makes the claims that come before, gives the rest of the work to measure, and asks after for
// what it finds while the claims stand.
func (b *claimBench) run(
	ctx context.Context, progress io.Writer, measure func(func() error) error,
	after func(dedup.Scope) ([]result, error),
) (results []result, err error) {
	scope := connect.ScopeOf(b.topic, "bench")
	defer func() {
		err = errors.Join(err, cleanUp(ctx, func(ctx context.Context) error {
			return b.stores[0].Forget(ctx, scope)
		}))
	}()
	if err := b.stores[0].Register(ctx, scope); err != nil {
		return nil, err
	}
	for _, store := range b.stores {
		if err := connect.WaitReady(ctx, store.Store, scope); err != nil {
			return nil, err
		}
	}
	if err := b.part(ctx, scope, progress, "claims before", b.before); err != nil {
		return nil, err
	}
	b.applied.Store(0)
	b.again.Store(0)
	b.batches = nil
	err = measure(func() error {
		before, start := used(), time.Now()
		if err := b.part(ctx, scope, progress, "claims", b.ids); err != nil {
			return err
		}
		results = b.results(start, before, used())
		return nil
	})
	if err != nil {
		return results, err
	}
	more, err := after(scope)
	return append(results, more...), err
}

// part makes more claims, in all lanes.
func (b *claimBench) part(
	ctx context.Context, scope dedup.Scope, progress io.Writer, name string, claims int64,
) error {
	first := b.end.Load()
	b.next.Store(first)
	b.end.Store(first + claims)
	var (
		wg     sync.WaitGroup
		failed = make([]error, b.askers*b.topic.Lanes)
	)
	for lane := range failed {
		wg.Go(func() { failed[lane] = b.lane(ctx, scope, lane) })
	}
	stop := b.showProgress(progress, name, first)
	wg.Wait()
	stop()
	return errors.Join(failed...)
}

func (b *claimBench) results(begun time.Time, before, after usage) []result {
	took := time.Since(begun)
	var durations []time.Duration
	for _, batch := range b.batches {
		durations = append(durations, batch.took)
	}
	slices.Sort(durations)
	b.rate = float64(b.ids) / took.Seconds()
	return []result{
		{"claims", b.ids, fmt.Sprintf("%s%d lanes, batches of %d, %d buckets, after %d claims",
			processesText(b.askers, len(b.stores)-b.askers), b.topic.Lanes,
			b.topic.BatchRecords, b.topic.Buckets, b.before)},
		{"applied", b.applied.Load(), ""},
		{"claimed again", b.again.Load(), "batches that were not answered or not decided"},
		{"claims/s", b.rate, ""},
		{"claims/s by tenths", tenths(begun, b.batches, b.ids),
			"of the claims: what a claim costs grows with the table"},
		{"cpu us/claim", float64((after.cpu - before.cpu).Microseconds()) / float64(b.ids),
			"of all processes"},
		{"batch p50 ms", percentile(durations, 0.50), ""},
		{"batch p99 ms", percentile(durations, 0.99), ""},
		{"peak rss MiB", after.peak >> 20, ""},
	}
}

// tenths are the rates at which each tenth of the claims was made; one number for several of them
// where a batch is larger than a tenth.
func tenths(begun time.Time, batches []claimedBatch, total int64) []int64 {
	var (
		rates         []int64
		counted, made int64
	)
	for _, batch := range batches {
		made += batch.claims
		if made*10/total == counted*10/total {
			continue
		}
		rates = append(rates, int64(float64(made-counted)/max(batch.ended.Sub(begun), 1).Seconds()))
		counted, begun = made, batch.ended
	}
	return rates
}

// lane claims until all are claimed.
func (b *claimBench) lane(ctx context.Context, scope dedup.Scope, lane int) error {
	random := rand.New(rand.NewPCG(uint64(lane), 7))
	for {
		first := b.next.Add(int64(b.topic.BatchRecords)) - int64(b.topic.BatchRecords)
		n := min(int64(b.topic.BatchRecords), b.end.Load()-first)
		if n <= 0 {
			return nil
		}
		claims := b.claims(random, first, n)
		start := time.Now()
		answers, err := b.insist(ctx, b.stores[lane%b.askers], scope, claims)
		if err != nil {
			return err
		}
		b.record(time.Since(start), claims, answers)
	}
}

const (
	claimAttempts = 10
	claimPause    = 100 * time.Millisecond
)

var errUndecided = errors.New("claims stay undecided, and no error says why")

// insist claims again what was not decided, as the pipeline does: a timeout or two do not end a
// measurement.
func (b *claimBench) insist(
	ctx context.Context, store dedup.Store, scope dedup.Scope, claims []dedup.Claim,
) ([]dedup.Answer, error) {
	for attempt := 1; ; attempt++ {
		answers, err := store.Claim(ctx, scope, claims)
		undecided := slices.ContainsFunc(answers, func(a dedup.Answer) bool {
			return a.Outcome == dedup.Undecided
		})
		switch {
		case err == nil && !undecided:
			return answers, nil
		case attempt == claimAttempts:
			return nil, cmp.Or(err, errUndecided)
		}
		b.again.Add(1)
		select {
		case <-time.After(claimPause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// claims are for new IDs and for some that were claimed before, by other lanes too.
func (b *claimBench) claims(random *rand.Rand, first, n int64) []dedup.Claim {
	claims := make([]dedup.Claim, 0, n)
	taken := make(map[int64]bool)
	for i := range n {
		number := first + i
		if first >= b.before && first > 0 && random.Float64() < b.duplicates {
			number = random.Int64N(first)
		}
		if taken[number] {
			number = first + i
		}
		taken[number] = true
		claims = append(claims, dedup.Claim{
			ID:    dedup.ID(b.spec.ID(int(number))),
			Owner: dedup.Coordinates{Partition: int32(first % 8), Offset: first + i},
		})
	}
	return claims
}

// record counts as applied also what an attempt before the last one applied.
func (b *claimBench) record(took time.Duration, claims []dedup.Claim, answers []dedup.Answer) {
	applied := int64(0)
	for i := range answers {
		if answers[i].Owner == claims[i].Owner {
			applied++
		}
	}
	b.applied.Add(applied)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.batches = append(b.batches, claimedBatch{int64(len(claims)), took, time.Now()})
}

func (b *claimBench) showProgress(out io.Writer, name string, first int64) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				end := b.end.Load()
				fmt.Fprintf(out, "%d of %d %s\n", min(b.next.Load(), end)-first, end-first, name)
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}
