package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/kdedup/kdedup/config"
)

func newValidate() *cobra.Command {
	var (
		flags   configFlags
		offline bool
	)
	cmd := &cobra.Command{
		Use:   "validate",
		Short: "Check a configuration and the servers that it names",
		Long:  "Check the configuration, the topics and the store, and print every problem. Nothing is changed.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, log, err := flags.load(cmd)
			if err != nil {
				return err
			}
			if !offline {
				if err := validate(cmd.Context(), c, log); err != nil {
					return err
				}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is valid: %d topics\n", flags.path, len(c.Topics))
			return nil
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&offline, "offline", false, "do not ask the servers")
	return cmd
}

// validate asks the servers and joins every problem.
func validate(ctx context.Context, c config.Config, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return errors.Join(validateTopics(ctx, c, log), validateStore(ctx, c, log))
}

func validateTopics(ctx context.Context, c config.Config, log *slog.Logger) error {
	client, err := adminClient(ctx, c, log)
	if err != nil {
		return err
	}
	defer client.Close()
	return checkTopics(ctx, client, c, entriesOf(c.Topics))
}

// validateStore opens the store and looks into each scope. An embedded store that does not exist
// yet is not made.
func validateStore(ctx context.Context, c config.Config, log *slog.Logger) error {
	if _, err := os.Stat(c.Store.Embedded.Path); c.Store.Type == config.StoreEmbedded && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	store, err := openStore(ctx, c.Store, prometheus.NewRegistry(), log)
	if err != nil {
		return err
	}
	defer store.Close()
	if err := checkRights(ctx, store); err != nil {
		return err
	}
	return each(entriesOf(c.Topics), func(e *entry) error { return e.compare(ctx, store) })
}
