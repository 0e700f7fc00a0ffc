package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/process"
)

func newDemo() *cobra.Command {
	d := demo{orders: 100_000, rate: 20_000}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch kdedup work, with nothing installed",
		Long: "Start a Kafka within this process, produce orders of which some arrive twice, and " +
			"clean them\n" +
			"with two processes of `kdedup run` that share their claims in the Kafka. One of them " +
			"is killed\nat its work, and started again. Then check the clean topic.",
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
	demoProcesses  = 2 // they share nothing but the Kafka
)

// demoFile is what the processes read. Partitions of one that was killed go to the other after 6 s.
const demoFile = `kafka: {brokers: [%q]}
store: {type: kafka, kafka: {path: %q}}
log: {level: warn}
topics:
  - input: orders
    output: orders.clean
    duplicates_topic: orders.duplicates
    dead_letter_topic: orders.dlq
    consumer_group: orders-dedup
    session_timeout: 6s
    message_id: {from: header, name: message-id}
`

func (d *demo) run(ctx context.Context) (err error) {
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
	file := filepath.Join(directory, "kdedup.yaml")
	text := fmt.Sprintf(demoFile, cluster.ListenAddrs()[0], directory)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	c, err := config.Load(file, nil)
	if err != nil {
		return err
	}
	log, _ := process.NewLogger(c.Log, d.errOut, nil)
	if err := connect.Setup(ctx, c, log, false, func(string) {}); err != nil {
		return err
	}
	processes, err := startAll(file, demoProcesses)
	defer processes.end()
	if err != nil {
		return err
	}
	return d.show(ctx, c, processes)
}

// show produces, watches until everything is committed, and checks the result.
func (d *demo) show(ctx context.Context, c config.Config, processes demoGroup) error {
	t := c.Topics[0]
	fmt.Fprintf(d.out, "kafka     %s (within this process)\npipeline  %s -> %s, duplicates to "+
		"%s\nclaims    in %s.claims, of both processes\n", c.Kafka.Brokers[0], t.Input, t.Output,
		t.DuplicatesTopic, t.ConsumerGroup)
	for _, p := range processes {
		fmt.Fprintf(d.out, "%-9s http://%s/\n", p.name, p.address)
	}
	fmt.Fprintln(d.out)

	view, err := newLiveView(d.out, c)
	if err != nil {
		return err
	}
	defer view.close()
	if err := view.awaitSettled(ctx, processes); err != nil || ctx.Err() != nil {
		return err
	}
	start := time.Now()
	traffic := newTraffic(d.orders)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	produced := make(chan error, 1)
	go func() {
		err := traffic.produce(ctx, c.Kafka.Brokers, d.rate)
		if err != nil {
			cancel() // the rest would wait for it
		}
		produced <- err
	}()
	if err = view.watch(ctx, traffic, processes); err != nil {
		cancel()
	}
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
	d.table(view, traffic, found, took)
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
	fmt.Fprintf(d.out, "\nStill running, also for your own records on the topic orders. End with "+
		"Ctrl-C.\nTo clean the topic yourself (docs/first-day.md):\n  kdedup init --brokers %s "+
		"--topic orders --clean orders.mine --group mine\n", c.Kafka.Brokers[0])
	<-ctx.Done()
	return nil
}
