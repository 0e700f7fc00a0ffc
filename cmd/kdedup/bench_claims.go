package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/workload"
)

func newBenchClaims() *cobra.Command {
	var (
		flags benchFlags
		ids   int
	)
	cmd := &cobra.Command{
		Use:   "claims",
		Short: "Measure the store alone",
		Long:  "Claim IDs from as many lanes and in as large batches as the topic's settings say.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, log, err := flags.settings(cmd)
			if err != nil {
				return err
			}
			if ids < 1 {
				return usageError{fmt.Errorf("--ids must be at least 1, got %d", ids)}
			}
			store, err := openStore(cmd.Context(), c.Store, prometheus.NewRegistry(), log)
			if err != nil {
				return err
			}
			bench := &claimBench{
				store: store, topic: c.Topics[0], ids: ids, duplicates: flags.duplicates,
				spec: workload.Spec{IDBytes: workload.UUIDBytes, Ordered: flags.ordered},
			}
			var results []result
			err = flags.measure(func() (err error) {
				results, err = bench.run(cmd.Context(), cmd.ErrOrStderr())
				return err
			})
			if err := errors.Join(err, store.Close()); err != nil {
				return err
			}
			results = append(results, flags.advise(cmd.Context(), c, log, bench.rate)...)
			return flags.print(cmd.OutOrStdout(), results)
		},
	}
	flags.add(cmd)
	cmd.Flags().IntVar(&ids, "ids", 1_000_000, "`NUMBER` of claims")
	return cmd
}

// claimBench measures one scope of its own.
type claimBench struct {
	store      dedup.Store
	topic      config.Topic
	ids        int
	duplicates float64
	spec       workload.Spec // makes the IDs
	rate       float64       // claims a second, once it has run

	next      atomic.Int64 // claims handed out so far
	applied   atomic.Int64
	mu        sync.Mutex
	durations []time.Duration // of the batches
}

func (b *claimBench) run(ctx context.Context, progress io.Writer) (results []result, err error) {
	scope := scopeOf(b.topic, "bench")
	defer func() {
		err = errors.Join(err, cleanUp(ctx, func(ctx context.Context) error { return b.store.Forget(ctx, scope) }))
	}()
	before, start := used(), time.Now()
	var (
		wg     sync.WaitGroup
		failed = make([]error, b.topic.Lanes)
	)
	for lane := range b.topic.Lanes {
		wg.Go(func() { failed[lane] = b.lane(ctx, scope, lane) })
	}
	stop := b.showProgress(progress)
	wg.Wait()
	stop()
	if err := errors.Join(failed...); err != nil {
		return nil, err
	}
	took, after := time.Since(start), used()
	slices.Sort(b.durations)
	b.rate = float64(b.ids) / took.Seconds()
	return []result{
		{"claims", b.ids, fmt.Sprintf("%d lanes, batches of %d, %d buckets", b.topic.Lanes, b.topic.BatchRecords, b.topic.Buckets)},
		{"applied", b.applied.Load(), ""},
		{"claims/s", b.rate, ""},
		{"cpu us/claim", float64((after.cpu - before.cpu).Microseconds()) / float64(b.ids), "of this process"},
		{"batch p50 ms", percentile(b.durations, 0.50), ""},
		{"batch p99 ms", percentile(b.durations, 0.99), ""},
		{"peak rss MiB", after.peak >> 20, ""},
	}, nil
}

// lane claims until all are claimed.
func (b *claimBench) lane(ctx context.Context, scope dedup.Scope, lane int) error {
	random := rand.New(rand.NewPCG(uint64(lane), 7))
	for {
		first := b.next.Add(int64(b.topic.BatchRecords)) - int64(b.topic.BatchRecords)
		n := min(int64(b.topic.BatchRecords), int64(b.ids)-first)
		if n <= 0 {
			return nil
		}
		claims := b.claims(random, first, n)
		start := time.Now()
		answers, err := b.store.Claim(ctx, scope, claims)
		if err != nil {
			return err
		}
		b.record(time.Since(start), answers)
	}
}

// claims are for new IDs and for some that were claimed before, by other lanes too.
func (b *claimBench) claims(random *rand.Rand, first, n int64) []dedup.Claim {
	claims := make([]dedup.Claim, 0, n)
	taken := make(map[int64]bool)
	for i := range n {
		number := first + i
		if b.duplicates > 0 && random.Float64() < b.duplicates && first > 0 {
			number = random.Int64N(first)
		}
		if taken[number] {
			number = first + i
		}
		taken[number] = true
		claims = append(claims, dedup.Claim{
			ID: dedup.ID(b.spec.ID(int(number))), Owner: dedup.Coordinates{Partition: int32(first % 8), Offset: first + i},
		})
	}
	return claims
}

func (b *claimBench) record(took time.Duration, answers []dedup.Answer) {
	applied := int64(0)
	for i := range answers {
		if answers[i].Outcome == dedup.Applied {
			applied++
		}
	}
	b.applied.Add(applied)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.durations = append(b.durations, took)
}

func (b *claimBench) showProgress(out io.Writer) (stop func()) {
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
				fmt.Fprintf(out, "%d of %d claims\n", min(b.next.Load(), int64(b.ids)), b.ids)
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}
