package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/internal/kafka"
)

func newSetup() *cobra.Command {
	var (
		flags        configFlags
		dryRun, skip bool
	)
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Create the tables and topics that a configuration needs",
		Long: "Create the keyspace, the tables and the topics that are missing and say what was done. Nothing\n" +
			"that exists is changed, so it is safe to repeat. The input topics must exist.\n\n" +
			"Then the store is asked for what kdedup relies on, with a few claims of its own that it deletes again,\n" +
			"and what it does is printed. This needs the rights of kdedup run.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, log, err := flags.load(cmd)
			if err != nil {
				return err
			}
			say := func(line string) { fmt.Fprintln(cmd.OutOrStdout(), line) }
			if err := setup(cmd.Context(), c, log, dryRun, say); err != nil || dryRun || skip {
				return err
			}
			return selfTest(cmd.Context(), c.Store, log, say)
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only say what would be created")
	cmd.Flags().BoolVar(&skip, "skip-self-test", false, "do not ask the store for what kdedup relies on")
	return cmd
}

func setup(ctx context.Context, c config.Config, log *slog.Logger, dryRun bool, say func(string)) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := setupStore(ctx, c.Store, log, dryRun, say); err != nil {
		return err
	}
	// The default is to answer from memory for 5 s, which is how long each new topic would take to be seen.
	client, err := adminClient(ctx, c, log, kgo.MetadataMinAge(50*time.Millisecond))
	if err != nil {
		return err
	}
	defer client.Close()
	for i, t := range c.Topics {
		if err := kafka.Setup(ctx, client, t, dryRun, say); err != nil {
			return fmt.Errorf("topics[%d]: %w", i, err)
		}
	}
	return nil
}
