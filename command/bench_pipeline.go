package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/lab/workload"
	"github.com/kdedup/kdedup/pipeline"
	"github.com/kdedup/kdedup/process"
)

func newBenchPipeline() *cobra.Command {
	var (
		flags benchFlags
		b     = pipelineBench{spec: workload.Default()}
	)
	cmd := &cobra.Command{
		Use:   "pipeline",
		Short: "Measure the whole pipeline",
		Long: "Create topics, fill the input, run the pipeline until it is drained, check that " +
			"nothing is lost,\n" +
			"doubled, changed or out of order, and delete the topics.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, log, err := flags.settings(cmd)
			if err != nil {
				return err
			}
			b.spec.Duplicates, b.spec.Ordered = flags.duplicates, flags.ordered
			if err := b.spec.Validate(); err != nil {
				return usageError{err}
			}
			b.config, b.log, b.progress, b.flags = c, log, cmd.ErrOrStderr(), &flags
			results, err := b.run(cmd.Context())
			if err != nil {
				return err
			}
			return flags.print(cmd.OutOrStdout(), results)
		},
	}
	flags.add(cmd)
	cmd.Flags().IntVar(&b.spec.Records, "records", b.spec.Records, "`NUMBER` of records")
	cmd.Flags().IntVar(&b.spec.Size, "size", b.spec.Size, "`BYTES` of a value")
	cmd.Flags().IntVar(&b.spec.Partitions, "partitions", b.spec.Partitions,
		"`NUMBER` of partitions")
	cmd.Flags().IntVar(&b.spec.IDBytes, "id-bytes", b.spec.IDBytes, "`BYTES` of an ID")
	cmd.Flags().IntVar(&b.spec.Hot, "hot", 0,
		"`NUMBER` of records that are copies of the first one")
	return cmd
}

// pipelineBench is one measurement on topics of its own.
type pipelineBench struct {
	config   config.Config
	log      *slog.Logger
	progress io.Writer
	spec     workload.Spec
	flags    *benchFlags
	rate     float64 // records a second, once it has run
}

func (b *pipelineBench) topic() config.Topic { return b.config.Topics[0] }

func (b *pipelineBench) run(ctx context.Context) (results []result, err error) {
	removeIndex, err := ownIndex(&b.config.Store)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, removeIndex()) }()
	servers := connect.NewServers(b.config, b.log)
	defer func() { err = errors.Join(err, servers.Close()) }()
	clusters, err := servers.Clusters(ctx)
	if err != nil {
		return nil, err
	}
	input, err := servers.InputOptions(ctx, "bench")
	if err != nil {
		return nil, err
	}
	output, err := servers.OutputOptions(ctx, "bench")
	if err != nil {
		return nil, err
	}
	defer func() {
		err = errors.Join(err, cleanUp(ctx, func(ctx context.Context) error {
			return b.deleteTopics(ctx, clusters)
		}))
	}()
	if _, err := kadm.NewClient(clusters.Input).CreateTopic(
		ctx, int32(b.spec.Partitions), -1, nil, b.topic().Input,
	); err != nil {
		return nil, fmt.Errorf("create topic %s: %w", b.topic().Input, err)
	}
	if err := connect.Setup(ctx, b.config, b.log, false, func(string) {}); err != nil {
		return nil, err
	}
	fmt.Fprintf(b.progress, "producing %d records\n", b.spec.Records)
	messages, err := b.spec.Fill(ctx, input, b.topic().Input, nil)
	if err != nil {
		return nil, err
	}
	drained, err := b.drain(ctx)
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(b.progress, "checking the clean topic")
	found, err := b.spec.Check(ctx, output, b.topic().Output, messages)
	if err != nil {
		return nil, err
	}
	results = append(drained, foundResults(found)...)
	return append(results, b.flags.advise(ctx, b.config, b.log, b.rate)...), found.Err()
}

func foundResults(f workload.Found) []result {
	return []result{
		{"lost", f.Lost, ""}, {"doubled", f.Doubled, ""}, {"changed", f.Changed, ""},
		{"out of order", f.Misplaced, ""},
	}
}

// drain runs the pipeline as `run` does, until every record is committed.
func (b *pipelineBench) drain(ctx context.Context) (results []result, err error) {
	lanes, keepers := b.flags.processesOf(b.config)
	var all []*process.Process // those with lanes first
	for _, c := range append(lanes, keepers...) {
		p, err := process.Wire(ctx, c, b.log, new(slog.LevelVar))
		if err != nil {
			return nil, err
		}
		defer p.Close()
		all = append(all, p)
	}
	working := all[:len(lanes)]
	defer func() {
		err = errors.Join(err, cleanUp(ctx, func(ctx context.Context) error {
			return working[0].Store().Forget(ctx, connect.ScopeOf(b.topic(), ""))
		}))
	}()
	var (
		before, start = used(), time.Now()
		joined, ended time.Time
		after         usage
	)
	err = runAllBeside(ctx, all, func(ctx context.Context) error {
		return b.flags.measure(func() (err error) {
			joined, ended, err = b.watch(ctx, working)
			after = used()
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	b.rate = float64(b.spec.Records) / ended.Sub(joined).Seconds()
	topic := b.topic()
	var claiming, forwarding, committing float64
	for _, p := range working {
		forwarded, claimed := p.Totals(topic.Input)
		claiming += claimed.Batches.Sum
		forwarding += forwarded.ForwardSeconds
		committing += forwarded.CommitSeconds
	}
	return []result{
		{"records", b.spec.Records, fmt.Sprintf(
			"%d bytes, %d partitions, %s, %s%d lanes, %d buckets", b.spec.Size, b.spec.Partitions,
			topic.Delivery, processesText(len(lanes), len(keepers)), topic.Lanes, topic.Buckets)},
		{"records/s", b.rate, "from when a lane was given partitions to the last commit"},
		{"start s", joined.Sub(start).Seconds(), "before that"},
		{"cpu us/record", float64((after.cpu - before.cpu).Microseconds()) / float64(
			b.spec.Records), "of all processes"},
		{"peak rss MiB", after.peak >> 20, "of all processes, with producing"},
		{"claiming s", claiming, "all lanes together"},
		{"forwarding s", forwarding, ""},
		{"committing s", committing, ""},
	}, nil
}

// lookEvery is how exact the times are. Reading the metrics more often would show in them.
const lookEvery = 100 * time.Millisecond

// watch returns when the first lane was given partitions and when all records were committed.
func (b *pipelineBench) watch(
	ctx context.Context, working []*process.Process,
) (joined, ended time.Time, err error) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	last := time.Now()
	shown := last
	for {
		select {
		case <-ctx.Done():
			return joined, ended, context.Cause(ctx)
		case <-tick.C:
		}
		if joined.IsZero() && slices.ContainsFunc(working, anyAssigned) {
			joined = last // it was then, or a little later
		}
		last = time.Now()
		done := sum(outcomes(working...))
		if done >= b.spec.Records {
			return joined, last, nil
		}
		if last.Sub(shown) > time.Second {
			fmt.Fprintf(b.progress, "%d of %d records\n", done, b.spec.Records)
			shown = last
		}
	}
}

func anyAssigned(p *process.Process) bool {
	return slices.ContainsFunc(p.Lanes(), func(l pipeline.LaneState) bool {
		return len(l.Assigned) > 0
	})
}

func (b *pipelineBench) deleteTopics(ctx context.Context, clusters kafka.Clusters) error {
	t, admin := b.topic(), kadm.NewClient(clusters.Input)
	if err := errors.Join(
		deleteTopics(ctx, admin, []string{t.Input}),
		deleteTopics(ctx, kadm.NewClient(clusters.Of(t, t.FenceTopic)), []string{t.FenceTopic}),
		deleteTopics(ctx, kadm.NewClient(connect.ClaimsClient(clusters, b.config)),
			connect.ClaimTopics(b.config)),
		deleteTopics(ctx, kadm.NewClient(clusters.Output), []string{t.Output, t.DeadLetterTopic}),
	); err != nil {
		return err
	}
	for _, client := range []*kgo.Client{clusters.Input, clusters.OfGroup(t)} {
		_, err := kadm.NewClient(client).DeleteGroup(ctx, t.ConsumerGroup)
		if err != nil && !errors.Is(err, kerr.GroupIDNotFound) { // once, where both are one
			return fmt.Errorf("delete the consumer group of the measurement: %w", err)
		}
	}
	return nil
}

// outcomes are the records of the one pipeline of a measurement, by what became of them.
func outcomes(processes ...*process.Process) map[string]int {
	counts := make(map[string]int)
	for _, p := range processes {
		totals, _ := p.Totals(p.Config().Topics[0].Input)
		for outcome, n := range totals.Outcomes {
			counts[outcome] += int(n)
		}
	}
	return counts
}

func sum(counts map[string]int) int {
	total := 0
	for _, n := range counts {
		total += n
	}
	return total
}
