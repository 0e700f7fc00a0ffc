package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/lab/torture"
	"github.com/kdedup/kdedup/lab/workload"
	"github.com/kdedup/kdedup/process"
)

const tortureHelp = `Fill a topic, let any deduplicator clean it, and kill its processes with
SIGKILL while they work. Afterwards the clean topic is read, and what was lost, doubled, changed or
put out of order is counted; if anything was, the exit code is 1. Before each kill the production
waits until the command works on all partitions.

COMMAND is started --processes times. It reads --topic and writes --clean, and takes the message ID
from the header message-id. In its arguments {process} is the number of the process, from 0 on, and
so is TORTURE_PROCESS in its environment. A process that ends is started again. The seed decides at
which record which process is killed, so that two commands can be compared.

Both topics are made, and stay. What the command keeps beside them is its own affair: give each run
new topics and a new consumer group.`

// tortureExample needs a Kafka at localhost:9092, and runs as it is.
const tortureExample = `  cat > t1.yaml <<'END'
  kafka: {brokers: [localhost:9092]}
  server: {listen: "127.0.0.1:0"}
  store: {type: kafka, kafka: {index: memory}}
  topics:
    - {input: t1, output: t1.clean, consumer_group: t1-dedup, dead_letter_topic: t1.dlq,
       message_id: {from: header, name: message-id}}
  END
  kdedup torture --brokers localhost:9092 --topic t1 --clean t1.clean -- \
    sh -c 'kdedup setup -c t1.yaml && exec kdedup run -c t1.yaml --instance {process}'`

func newTorture() *cobra.Command {
	flags := tortureFlags{plan: torture.Plan{Records: workload.Default()}}
	cmd := &cobra.Command{
		Use:     "torture [flags] -- COMMAND [ARGUMENT]…",
		Short:   "Kill any deduplicator while it works, and count what it loses and doubles",
		Long:    tortureHelp,
		Example: tortureExample,
		Args: func(_ *cobra.Command, args []string) error {
			return usageOf(torture.Find(args))
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			flags.plan.Command = args
			return flags.run(cmd)
		},
	}
	flags.add(cmd)
	return cmd
}

func usageOf(err error) error {
	switch {
	case errors.Is(err, torture.ErrNoCommand):
		return usageError{errors.New("write the command behind --: kdedup torture … -- COMMAND")}
	case err != nil:
		return usageError{err}
	}
	return nil
}

type tortureFlags struct {
	connectionFlags
	plan         torture.Plan
	cleanBrokers []string
	format       string
}

func (f *tortureFlags) add(cmd *cobra.Command) {
	f.connectionFlags.add(cmd)
	p, flags := &f.plan, cmd.Flags()
	flags.StringVar(&p.Input, "topic", "", "`TOPIC` to fill, for the command to read")
	flags.StringVar(&p.Clean, "clean", "", "`TOPIC` that the command writes")
	flags.StringSliceVar(&f.cleanBrokers, "clean-brokers", nil, "some brokers of the cluster that "+
		"has this topic, if it is another one, as `HOST:PORT`, with commas (how to reach them is "+
		"read from "+config.EnvName("kafka.output")+"_…)")
	flags.IntVar(&p.Records.Records, "records", 200_000, "produce this `NUMBER` of records")
	flags.IntVar(&p.Records.Size, "size", p.Records.Size, "`BYTES` of a value")
	flags.IntVar(&p.Records.Partitions, "partitions", p.Records.Partitions,
		"`NUMBER` of partitions of both topics")
	flags.Float64Var(&p.Records.Duplicates, "duplicates", p.Records.Duplicates,
		"`SHARE` of the records that are copies of an earlier one, on any partition")
	flags.IntVar(&p.Processes, "processes", 2, "`NUMBER` of processes")
	flags.IntVar(&p.Kills, "kills", 20, "kill this `NUMBER` of times")
	flags.DurationVar(&p.During, "during", 2*time.Minute,
		"`TIME` of the production, unless it waits for the command")
	flags.DurationVar(&p.Patience, "patience", 30*time.Second, "`TIME` for which the clean topic "+
		"must stand still at the end, once the group has read everything")
	flags.Uint64Var(&p.Seed, "seed", 0, "`NUMBER` that decides what happens (default: any)")
	addFormat(cmd, &f.format, formatText, formatJSON)
}

func (f *tortureFlags) run(cmd *cobra.Command) (err error) {
	if err := f.check(cmd.Flags().Changed("seed")); err != nil {
		return usageError{err}
	}
	draft, err := f.draft(f.output() + placeholder)
	if err != nil {
		return err
	}
	log, _ := process.NewLogger(draft.Log, cmd.ErrOrStderr(), nil)
	warnOfUnencrypted(draft, log)
	servers := connect.NewServers(draft, log)
	defer func() { err = errors.Join(err, servers.Close()) }()
	input, output, err := connectToLook(cmd.Context(), servers, "torture", log)
	if err != nil {
		return err
	}
	f.plan.Connection = input.options
	if output != input {
		f.plan.CleanConnection = output.options
	}
	begun := time.Now()
	f.plan.Step = func(format string, args ...any) {
		fmt.Fprintf(cmd.ErrOrStderr(), "%7.1f s  %s\n", time.Since(begun).Seconds(),
			fmt.Sprintf(format, args...))
	}
	report, err := torture.Run(cmd.Context(), f.plan)
	if err != nil {
		if errors.Is(err, context.Canceled) {
			err = errors.New("interrupted: nothing can be said about the command")
		}
		return err
	}
	return errors.Join(f.write(cmd.OutOrStdout(), report), report.Clean.Err())
}

// output is the cluster of the clean topic, as a file has it in its section kafka.
func (f *tortureFlags) output() string {
	if len(f.cleanBrokers) == 0 {
		return ""
	}
	return "  output: {brokers: " + quotedList(f.cleanBrokers) + "}\n"
}

// check refuses what cannot be done, and chooses a seed.
func (f *tortureFlags) check(seeded bool) error {
	p := &f.plan
	switch {
	case p.Input == "" || p.Clean == "":
		return errors.New("--topic and --clean are required")
	case p.Input == p.Clean && len(f.cleanBrokers) == 0:
		return errors.New("--topic and --clean must be two topics")
	case p.Processes < 1:
		return fmt.Errorf("--processes must be at least 1, got %d", p.Processes)
	case p.Kills < 0:
		return fmt.Errorf("--kills must not be negative, got %d", p.Kills)
	case p.During <= 0 || p.Patience <= 0:
		return errors.New("--during and --patience must be above 0")
	}
	if !seeded {
		p.Seed = uint64(rand.Uint32N(math.MaxUint32)) // short enough to be typed
	}
	p.Records.Seed = p.Seed
	return p.Validate()
}

func (f *tortureFlags) write(out io.Writer, r torture.Report) error {
	if f.format == formatJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	}
	fmt.Fprintf(out, "%d records of %d messages through %d processes with %d kills in %.0f s "+
		"(--seed %d)\n", r.Records, r.Messages, r.Processes, r.Kills, r.Seconds, r.Seed)
	if r.AtRest > 0 {
		fmt.Fprintf(out, "%d of the kills came while the command did not work on all partitions\n",
			r.AtRest)
	}
	if r.Ended > 0 {
		fmt.Fprintf(out, "processes ended by themselves %d times, and were started again\n", r.Ended)
	}
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	for _, row := range []struct {
		name string
		n    int
	}{
		{"on the clean topic", r.Clean.Records}, {"lost", r.Clean.Lost},
		{"doubled", r.Clean.Doubled}, {"changed", r.Clean.Changed},
		{"out of order", r.Clean.Misplaced},
	} {
		fmt.Fprintf(table, "%s\t%d\t\n", row.name, row.n)
	}
	return table.Flush()
}
