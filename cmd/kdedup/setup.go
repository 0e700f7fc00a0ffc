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
		flags  configFlags
		dryRun bool
	)
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Create the tables and topics that a configuration needs",
		Long: "Create the keyspace, the tables and the topics that are missing and say what was done. Nothing\n" +
			"that exists is changed, so it is safe to repeat. The input topics must exist.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, log, err := flags.load(cmd)
			if err != nil {
				return err
			}
			say := func(line string) { fmt.Fprintln(cmd.OutOrStdout(), line) }
			return setup(cmd.Context(), c, log, dryRun, say)
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only say what would be created")
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
