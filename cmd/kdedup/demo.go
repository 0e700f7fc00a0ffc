package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/kdedup/kdedup/cmd/kdedup/internal/process"
	"github.com/kdedup/kdedup/cmd/kdedup/internal/wiring"
	"github.com/kdedup/kdedup/config"
)

func newDemo() *cobra.Command {
	d := demo{orders: 100_000, rate: 20_000}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch kdedup work, with nothing installed",
		Long: "Start a Kafka within this process, produce orders of which some arrive twice, and " +
			"clean them\n" +
			"as two processes of `kdedup run` do that share their claims in the Kafka. Then " +
			"check the clean topic.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d.out, d.errOut = cmd.OutOrStdout(), cmd.ErrOrStderr()
			return d.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&d.keep, "keep", false, "leave everything up until a signal")
	cmd.Flags().IntVar(&d.orders, "orders", d.orders, "`NUMBER` of orders, before duplicates")
	cmd.Flags().IntVar(&d.rate, "rate", d.rate, "records a second that are produced")
	return cmd
}

// demo is one run of the demonstration.
type demo struct {
	orders, rate int
	keep         bool
	out, errOut  io.Writer
}

const (
	demoPartitions = 8
	demoProcesses  = 2 // parts of this one; they share nothing but the Kafka
)

func (d *demo) run(ctx context.Context) error {
	if d.orders < 1 || d.rate < 1 {
		return usageError{fmt.Errorf("--orders and --rate must be at least 1, got %d and %d",
			d.orders, d.rate)}
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1),
		kfake.SeedTopics(demoPartitions, "orders"))
	if err != nil {
		return fmt.Errorf("start the embedded kafka: %w", err)
	}
	defer cluster.Close()
	directory, err := os.MkdirTemp("", "kdedup-demo-")
	if err != nil {
		return fmt.Errorf("make a directory for the indexes: %w", err)
	}
	defer os.RemoveAll(directory)

	c := demoConfig(cluster.ListenAddrs(), directory)
	log, level := process.NewLogger(c.Log, d.errOut, nil)
	if err := wiring.Setup(ctx, c, log, false, func(string) {}); err != nil {
		return err
	}
	var processes []*process.Process
	work := func(ctx context.Context) error { return d.show(ctx, processes, log) }
	for n := range demoProcesses {
		c.Instance = fmt.Sprint("demo-", n+1)
		p, err := process.Wire(ctx, c, log, level)
		if err != nil {
			return err
		}
		defer p.Close()
		processes = append(processes, p)
		inner := work
		work = func(ctx context.Context) error { return p.RunBeside(ctx, inner) }
	}
	return work(ctx)
}

func demoConfig(brokers []string, directory string) config.Config {
	c := config.Default()
	c.Instance = "demo"
	c.Kafka.Brokers = brokers
	c.Store.Type = config.StoreKafka
	c.Store.Kafka.Path = directory
	c.Server.Listen = "127.0.0.1:0"
	c.Log.Level = slog.LevelWarn.String()
	t := config.DefaultTopic()
	t.Input, t.Output, t.ConsumerGroup = "orders", "orders.clean", "orders-dedup"
	t.DuplicatesTopic, t.DeadLetterTopic = "orders.duplicates", "orders.dlq"
	t.MessageID = config.MessageID{From: config.FromHeader, Name: orderIDHeader}
	c.Topics = []config.Topic{t}
	return c.Derived()
}

// show produces, watches until everything is committed, and checks the result.
func (d *demo) show(
	ctx context.Context, processes []*process.Process, log *slog.Logger,
) error {
	c := processes[0].Config()
	client, err := wiring.AdminClient(ctx, c, log)
	if err != nil {
		return err
	}
	defer client.Close()
	fmt.Fprintf(d.out, "kafka     %s (within this process)\npipeline  orders -> orders.clean, "+
		"duplicates to orders.duplicates\nclaims    in orders-dedup.claims, of both "+
		"processes\n", c.Kafka.Brokers[0])
	for _, p := range processes {
		fmt.Fprintf(d.out, "%-9s %s\n", p.Config().Instance, p.URL())
	}
	fmt.Fprintln(d.out)

	start := time.Now()
	traffic := newTraffic(d.orders)
	produced := make(chan error, 1)
	go func() { produced <- traffic.produce(ctx, c.Kafka.Brokers, d.rate) }()
	err = newLiveView(d.out, processes).watch(ctx, traffic)
	if produceErr := <-produced; produceErr != nil {
		return fmt.Errorf("produce orders: %w", produceErr)
	}
	if err != nil || ctx.Err() != nil {
		return err
	}
	took := time.Since(start)
	found, err := checkClean(ctx, c, traffic)
	if err != nil {
		return err
	}
	d.table(processes, traffic, found, took)
	if err := d.showDuplicates(ctx, c); err != nil {
		return err
	}
	if err := found.err(); err != nil {
		return err
	}
	if !d.keep {
		fmt.Fprintln(d.out, "\nWith --keep all of it stays up, for a look at the pages above and for "+
			"your own records.")
		return nil
	}
	fmt.Fprintln(d.out,
		"\nStill running, also for your own records on the topic orders. End with Ctrl-C.")
	<-ctx.Done()
	return nil
}
