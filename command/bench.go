package command

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/pprof"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/lab/workload"
)

func newBench() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure a configuration on the servers that it names",
		Long: "Measure what the store, or the whole pipeline, does on your servers. A topic of " +
			"the configuration\n" +
			"gives the settings. The commands use topics, a consumer group and a scope of their " +
			"own, and delete\n" +
			"them at the end. Of the topic itself they read a few records, to see what its IDs " +
			"look like and how\n" +
			"many come: that tells how large the store will be.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBenchClaims(), newBenchPipeline())
	return cmd
}

// benchFlags are common to all measurements.
type benchFlags struct {
	configFlags
	topic      string
	duplicates float64
	ordered    bool
	rate       float64
	format     string
	profile    string
	processes  int

	own config.Topic // the user's, as it is configured
}

func (f *benchFlags) add(cmd *cobra.Command) {
	f.configFlags.add(cmd)
	f.addTopic(cmd, &f.topic, "input `TOPIC` whose settings are measured (the first one)")
	cmd.Flags().Float64Var(&f.duplicates, "duplicates", 0.1, "share of copies, 0 to 0.99")
	cmd.Flags().BoolVar(&f.ordered, "time-ordered", false,
		"IDs that begin with the time, as UUIDv7 and ULID do, in place of random ones")
	cmd.Flags().Float64Var(&f.rate, "rate", 0,
		"records a `SECOND` to advise for (default: as the topic had in the last 24 hours)")
	cmd.Flags().IntVar(&f.processes, "processes", 1, "`NUMBER` of processes, each with its lanes "+
		"and its index, which share out a\nclaim log as store.keepers says; they run in this one, "+
		"which tells of all together")
	addFormat(cmd, &f.format, formatTable, formatJSON)
	cmd.Flags().StringVar(&f.profile, "cpuprofile", "",
		"write a CPU profile of the measured part to `FILE`")
}

// settings are the topic's under names of their own, so that nothing of the user's is touched.
func (f *benchFlags) settings(cmd *cobra.Command) (config.Config, *slog.Logger, error) {
	c, log, err := f.load(cmd)
	if err != nil {
		return c, nil, err
	}
	if f.duplicates < 0 || f.duplicates > 0.99 {
		return c, nil, usageError{fmt.Errorf("--duplicates must be 0 to 0.99, got %v",
			f.duplicates)}
	}
	if f.rate < 0 {
		return c, nil, usageError{fmt.Errorf("--rate must be at least 0, got %v", f.rate)}
	}
	f.own = c.Topics[0]
	if f.topic != "" || f.own.Pattern != "" {
		var found bool
		if f.own, found = c.EntryOf(f.topic); !found {
			return c, nil, usageError{fmt.Errorf("--topic: no entry of topics has the input %q",
				f.topic)}
		}
	}
	if err := f.severalProcesses(&c); err != nil {
		return c, nil, err
	}
	c.Topics = []config.Topic{benchTopic(f.own)}
	c.Server.Listen = "127.0.0.1:0"
	return c, log, nil
}

func benchTopic(t config.Topic) config.Topic {
	name := "kdedup-bench-" + strings.ToLower(rand.Text()[:8])
	t.Input, t.Output, t.DeadLetterTopic, t.DuplicatesTopic = name, name+".clean", name+".dlq", ""
	t.ConsumerGroup, t.FenceTopic = name, name+".fence"
	t.Scope, t.ScopeGroup = name, name
	t.MessageID = config.MessageID{From: config.FromHeader, Name: workload.IDHeader}
	// what a broken run leaves behind goes by itself
	t.TTL = max(time.Second, min(t.TTL, 24*time.Hour))
	t.Start, t.Mode = config.StartEarliest, config.ModeEnforce
	return t
}

// claimLogs makes a claim log for the measurement, which has a group of its own. What
// it returns deletes them.
func (f *benchFlags) claimLogs(
	ctx context.Context, c *config.Config, log *slog.Logger,
) (remove func(context.Context) error, err error) {
	if !c.Store.Logs() {
		return func(context.Context) error { return nil }, nil
	}
	removeIndex, err := ownIndex(&c.Store)
	if err != nil {
		return nil, err
	}
	servers := connect.NewServers(*c, log, kgo.MetadataMinAge(50*time.Millisecond))
	clusters, err := servers.Clusters(ctx)
	if err != nil {
		return nil, errors.Join(err, removeIndex())
	}
	like := *c // the bench's scope on the user's topic, which exists
	like.Topics = []config.Topic{f.own}
	like.Topics[0].ScopeGroup, like.Topics[0].TTL = c.Topics[0].ScopeGroup, c.Topics[0].TTL
	remove = func(ctx context.Context) error {
		claims := kadm.NewClient(connect.ClaimsClient(clusters, *c))
		return errors.Join(
			deleteTopics(ctx, claims, connect.ClaimTopics(like)),
			connect.RemoveClaimLogs(ctx, like, log), removeIndex(), servers.Close())
	}
	if err := connect.SetupClaimLogs(
		ctx, clusters, like, log, false, func(string) {},
	); err != nil {
		if undone := cleanUp(ctx, remove); undone != nil { // as a rule for the same reason
			log.Debug("what was made of the claim log is left behind", "error", undone)
		}
		return nil, err
	}
	return remove, nil
}

// deleteTopics takes the measurement's topics away.
func deleteTopics(ctx context.Context, admin *kadm.Client, names []string) error {
	answers, err := admin.DeleteTopics(ctx, names...)
	for _, answer := range answers {
		if err == nil && !errors.Is(answer.Err, kerr.UnknownTopicOrPartition) { // none was made
			err = answer.Err
		}
	}
	if err != nil {
		return fmt.Errorf("delete the topics of the measurement: %w", err)
	}
	return nil
}

// ownIndex puts the index of a claim log into a directory of its own, beside that of a process that
// runs. What it returns deletes it.
func ownIndex(c *config.Store) (remove func() error, err error) {
	path, setting := c.IndexPath()
	if path == nil {
		return func() error { return nil }, nil
	}
	scratch, err := scratchBeside(*path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", setting, err)
	}
	*path = scratch
	return func() error { return os.RemoveAll(scratch) }, nil
}

// measure runs the part that is measured, under the profiler if that was asked for.
func (f *benchFlags) measure(work func() error) error {
	if f.profile == "" {
		return work()
	}
	file, err := os.Create(f.profile)
	if err != nil {
		return fmt.Errorf("--cpuprofile: %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return errors.Join(err, file.Close())
	}
	err = work()
	pprof.StopCPUProfile()
	return errors.Join(err, file.Close())
}

// usage is what this process has used so far; zero where the system does not tell.
type usage struct {
	cpu  time.Duration
	peak int64 // resident memory, bytes
}

// result is one row of a measurement.
type result struct {
	Name  string
	Value any
	Note  string // in the table only
}

// print shows the results as a table or as one JSON object.
func (f *benchFlags) print(out io.Writer, results []result) error {
	if f.format == formatJSON {
		object := make(map[string]any)
		for _, r := range results {
			object[strings.ReplaceAll(r.Name, " ", "_")] = r.Value
		}
		return json.NewEncoder(out).Encode(object)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, r := range results {
		fmt.Fprintf(table, "%s\t%v\t  %s\n", r.Name, shortened(r.Value), r.Note)
	}
	return table.Flush()
}

func shortened(value any) any {
	if f, ok := value.(float64); ok {
		return fmt.Sprintf("%.1f", f)
	}
	return value
}

// percentile of sorted durations, in milliseconds.
func percentile(sorted []time.Duration, p float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at := min(len(sorted)-1, int(p*float64(len(sorted))))
	return float64(sorted[at].Microseconds()) / 1000
}

// cleanUp runs even when the measurement was interrupted.
func cleanUp(ctx context.Context, what func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connect.StartTimeout)
	defer cancel()
	return what(ctx)
}
