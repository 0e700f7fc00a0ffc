package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kdedup/kdedup/command/backfill"
	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/connect/kafka"
	"github.com/kdedup/kdedup/connect/logreader"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/dryrun"
)

func newBackfill() *cobra.Command {
	var flags backfillFlags
	cmd := &cobra.Command{
		Use:   "backfill",
		Short: "Claim the message IDs that are on a clean topic already",
		Long: "Claim the message IDs of all records on a pipeline's output topic, so that the " +
			"pipeline does not\n" +
			"emit again what was emitted before it ran. Run it once, right before the first " +
			"start: claims hold\n" +
			"for the ttl from now on. You may interrupt it and run it again, and it changes no " +
			"topic.\n\n" +
			"The output must carry nothing but this pipeline's messages, with their IDs where " +
			"the input has them.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, log, err := flags.load(cmd)
			if err != nil {
				return err
			}
			topic, err := chooseTopic(c.Topics, flags.topic)
			if err != nil {
				return err
			}
			return flags.run(cmd, c, topic, log)
		},
	}
	flags.add(cmd)
	return cmd
}

type backfillFlags struct {
	configFlags
	topic  string
	dryRun bool
	force  bool
}

func (f *backfillFlags) add(cmd *cobra.Command) {
	f.configFlags.add(cmd)
	f.addTopic(cmd, &f.topic, "input `TOPIC` (needed if the configuration has several)")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only count what would be claimed")
	cmd.Flags().BoolVar(&f.force, "force", false, "also if the consumer group is active or has "+
		"commits: that loses nothing, but the pipeline emits\n"+
		"the messages that it claims before the backfill does, even if they had been emitted "+
		"before")
}

func (f *backfillFlags) run(
	cmd *cobra.Command, c config.Config, t config.Topic, log *slog.Logger,
) (err error) {
	if err := checkBackfill(c.Topics, t); err != nil {
		return usageError{err}
	}
	servers := connect.NewServers(c, log)
	defer func() { err = errors.Join(err, servers.Close()) }()
	if err := wantTopics(cmd.Context(), servers, t); err != nil {
		return err
	}
	if !f.force {
		if err := refuseUsedGroup(cmd.Context(), servers, t); err != nil {
			return err
		}
	}
	clean, err := describeLog(cmd.Context(), servers, t, t.Output, logreader.Bounds{})
	if err != nil {
		return err
	}
	e, err := servers.Entry(t)
	if err != nil {
		return err
	}
	claimer, err := f.claimer(cmd.Context(), c, servers, &e)
	if err != nil {
		return err
	}
	counts, err := f.claim(cmd, servers, e, clean, claimer, log)
	return errors.Join(err, printBackfill(cmd.OutOrStdout(), f.dryRun, counts))
}

// checkBackfill refuses an output with which claims would meet records that they do not belong to.
func checkBackfill(topics []config.Topic, t config.Topic) error {
	for i, other := range topics {
		if other.Pattern != "" { // its topics are kept apart by Expand
			continue
		}
		sameScope := other.Scope == t.Scope && other.ScopeGroup == t.ScopeGroup
		switch {
		case other.Output == t.Output && !sameScope:
			return fmt.Errorf("topics[%d] writes %s too, with IDs of another scope: an ID of its "+
				"messages would block this pipeline's message with the same one", i, t.Output)
		case other.Input == t.Output && sameScope:
			return fmt.Errorf("topics[%d] reads %s with the same scope: its records would take "+
				"these claims for their own; give it another scope", i, t.Output)
		}
	}
	return nil
}

// wantTopics refuses topics that do not exist before anything waits for something else.
func wantTopics(ctx context.Context, servers *connect.Servers, t config.Topic) error {
	ctx, cancel := context.WithTimeout(ctx, connect.StartTimeout)
	defer cancel()
	clusters, err := servers.Reach(ctx)
	if err != nil {
		return err
	}
	wanted := func(topic string) error {
		names, err := kafka.TopicNames(ctx, clusters.Of(t, topic))
		if err != nil {
			return err
		}
		return missingTopic(topic, names)
	}
	output := wanted(t.Output)
	if output != nil {
		output = fmt.Errorf("%w; kdedup setup -c FILE makes it", output)
	}
	return errors.Join(wanted(t.Input), output)
}

// refuseUsedGroup wants a pipeline that never ran.
func refuseUsedGroup(ctx context.Context, servers *connect.Servers, t config.Topic) error {
	ctx, cancel := context.WithTimeout(ctx, connect.StartTimeout)
	defer cancel()
	clusters, err := servers.Clusters(ctx)
	if err != nil {
		return err
	}
	why, err := kafka.GroupInUse(ctx, clusters.Input, t.ConsumerGroup, t.Input)
	if err == nil && why != "" {
		err = fmt.Errorf("%s: the pipeline has run, and claimed what it emitted itself; backfill "+
			"is for what was emitted before. "+
			"With --force it runs all the same: nothing is lost by it, but what the pipeline has "+
			"claimed and not emitted yet is emitted, also if it had been before", why)
	}
	return err
}

// claimer opens the store and registers the scope; for a dry run it only compares it, and takes an
// embedded store that does not exist yet for an empty one.
func (f *backfillFlags) claimer(
	ctx context.Context, c config.Config, servers *connect.Servers, e *connect.Entry,
) (dedup.Claimer, error) {
	if f.dryRun && connect.NotMade(c.Store) {
		return dryrun.Claimer{Store: emptyStore{}}, nil
	}
	opening, cancel := context.WithTimeout(ctx, connect.StartTimeout)
	defer cancel()
	store, err := servers.Store(opening)
	if err != nil {
		return nil, err
	}
	if err = e.Compare(opening, store); err == nil {
		err = connect.CheckMoved(opening, store, e.ClaimScope())
	}
	if err == nil && !f.dryRun {
		err = store.Register(opening, e.ClaimScope())
	}
	if err == nil {
		err = connect.WaitReady(ctx, store, e.ClaimScope())
	}
	if err != nil {
		return nil, err
	}
	if f.dryRun {
		return dryrun.Claimer{Store: store}, nil
	}
	return store, nil
}

// emptyStore has no claims.
type emptyStore struct{}

func (emptyStore) Lookup(context.Context, dedup.Scope, dedup.ID) (dedup.Answer, error) {
	return dedup.Answer{}, nil
}

func (f *backfillFlags) claim(
	cmd *cobra.Command, servers *connect.Servers, e connect.Entry, clean logreader.Log,
	claimer dedup.Claimer, log *slog.Logger,
) (backfill.Counts, error) {
	connection, err := servers.OutputOptions(cmd.Context(), "backfill")
	if err != nil {
		return backfill.Counts{}, err
	}
	line := newProgress(cmd.ErrOrStderr())
	defer line.end()
	counts, err := backfill.Run(cmd.Context(), backfill.Options{
		Connection: connection, Clean: clean,
		Judge: dedup.New(e.ClaimScope(), claimer,
			dedup.Options{Extractor: e.Extractor, Logger: log}),
		BatchRecords: e.BatchRecords, Progress: line.show,
	})
	if err != nil && cmd.Context().Err() != nil {
		return counts, fmt.Errorf("interrupted; what was claimed stands, run it again to go on: %w",
			err)
	}
	return counts, err
}

func printBackfill(out io.Writer, dryRun bool, c backfill.Counts) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, n int64, note string) {
		fmt.Fprintf(table, "%s\t%d\t  %s\n", name, n, note)
	}
	claimed := "claimed"
	if dryRun {
		claimed = "would be claimed"
	}
	row("records", c.Records, "on the clean topic")
	row(claimed, c.Claimed, "")
	row("already owned", c.Earlier, "by an earlier backfill")
	row("", c.Taken, "by a record of the input, or by hand")
	row("", c.Copies, "by another record of the clean topic")
	row("missing", c.Missing, "without a message ID")
	if c.Exempt > 0 {
		row("exempt", c.Exempt, "for only_if or on_tombstone")
	}
	return table.Flush()
}
