package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/kdedup/kdedup/config"
)

func newBenchPipeline() *cobra.Command {
	var (
		flags benchFlags
		b     = pipelineBench{records: 1_000_000, size: 200, partitions: 8}
	)
	cmd := &cobra.Command{
		Use:   "pipeline",
		Short: "Measure the whole pipeline",
		Long: "Create topics, fill the input, run the pipeline until it is drained, check that nothing is lost,\n" +
			"doubled, changed or out of order, and delete the topics.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, log, err := flags.settings(cmd)
			if err != nil {
				return err
			}
			if b.records < 1 || b.size < benchHeader || b.partitions < 1 {
				return usageError{fmt.Errorf("--records and --partitions must be at least 1 and --size at least %d", benchHeader)}
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
	cmd.Flags().IntVar(&b.records, "records", b.records, "`NUMBER` of records")
	cmd.Flags().IntVar(&b.size, "size", b.size, "`BYTES` of a value")
	cmd.Flags().IntVar(&b.partitions, "partitions", b.partitions, "`NUMBER` of partitions")
	return cmd
}

// pipelineBench is one measurement on topics of its own.
type pipelineBench struct {
	config                    config.Config
	log                       *slog.Logger
	progress                  io.Writer
	records, size, partitions int
	flags                     *benchFlags
}

func (b *pipelineBench) topic() config.Topic { return b.config.Topics[0] }

func (b *pipelineBench) run(ctx context.Context) (results []result, err error) {
	client, err := adminClient(b.config, b.log)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	defer func() {
		err = errors.Join(err, cleanUp(ctx, func(ctx context.Context) error { return b.deleteTopics(ctx, admin) }))
	}()
	if _, err := admin.CreateTopic(ctx, int32(b.partitions), -1, nil, b.topic().Input); err != nil {
		return nil, fmt.Errorf("create topic %s: %w", b.topic().Input, err)
	}
	if err := setup(ctx, b.config, b.log, false, func(string) {}); err != nil {
		return nil, err
	}
	fmt.Fprintf(b.progress, "producing %d records\n", b.records)
	messages, err := b.fill(ctx)
	if err != nil {
		return nil, fmt.Errorf("produce: %w", err)
	}
	drained, err := b.drain(ctx)
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(b.progress, "checking the clean topic")
	found, err := b.check(ctx, messages)
	if err != nil {
		return nil, err
	}
	return append(drained, found.results()...), found.err()
}

// drain runs the pipeline as `run` does, until every record is committed.
func (b *pipelineBench) drain(ctx context.Context) (results []result, err error) {
	p, err := wire(ctx, b.config, b.log, new(slog.LevelVar))
	if err != nil {
		return nil, err
	}
	defer p.close()
	defer func() {
		err = errors.Join(err, cleanUp(ctx, func(ctx context.Context) error {
			return p.store.Forget(ctx, scopeOf(b.topic(), ""))
		}))
	}()
	var (
		before, start = used(), time.Now()
		after         usage
		took          time.Duration
	)
	err = p.runBeside(ctx, func(ctx context.Context) error {
		err := b.flags.measure(func() error { return b.watch(ctx, p.registry) })
		took, after = time.Since(start), used()
		return err
	})
	if err != nil {
		return nil, err
	}
	topic, m := b.topic(), readMetrics(p.registry)
	return []result{
		{"records", b.records, fmt.Sprintf("%d bytes, %d partitions, %s, %d lanes, %d buckets", b.size, b.partitions, topic.Delivery, topic.Lanes, topic.Buckets)},
		{"records/s", float64(b.records) / took.Seconds(), "from the start, with joining the group"},
		{"cpu us/record", float64((after.cpu - before.cpu).Microseconds()) / float64(b.records), "of this process"},
		{"peak rss MiB", after.peak >> 20, "of this process, with producing"},
		{"claiming s", m.seconds("kdedup_claim_duration_seconds"), "all lanes together"},
		{"forwarding s", m.seconds("kdedup_forward_duration_seconds"), ""},
		{"committing s", m.seconds("kdedup_commit_duration_seconds"), ""},
	}, nil
}

// watch returns when all records are committed.
func (b *pipelineBench) watch(ctx context.Context, gatherer prometheus.Gatherer) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	shown := time.Now()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		done := sum(outcomesOf(gatherer))
		if done >= b.records {
			return nil
		}
		if time.Since(shown) > time.Second {
			fmt.Fprintf(b.progress, "%d of %d records\n", done, b.records)
			shown = time.Now()
		}
	}
}

func (b *pipelineBench) deleteTopics(ctx context.Context, admin *kadm.Client) error {
	t := b.topic()
	answers, err := admin.DeleteTopics(ctx, t.Input, t.Output, t.DeadLetterTopic, t.FenceTopic)
	if err == nil {
		err = answers.Error()
	}
	if err != nil {
		return fmt.Errorf("delete the topics of the measurement: %w", err)
	}
	if _, err := admin.DeleteGroup(ctx, t.ConsumerGroup); err != nil {
		return fmt.Errorf("delete the consumer group of the measurement: %w", err)
	}
	return nil
}
