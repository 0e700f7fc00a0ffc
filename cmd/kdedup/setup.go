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
		flags               configFlags
		dryRun, skip, adopt bool
		accept              acceptance
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
			if err := setup(cmd.Context(), c, log, dryRun, say); err != nil {
				return err
			}
			if adopt {
				if err := adoptOffsets(cmd.Context(), c, log, dryRun, say); err != nil {
					return err
				}
			}
			if accept != (acceptance{}) {
				if err := acceptStore(cmd.Context(), c, log, accept, dryRun, say); err != nil {
					return err
				}
			}
			if dryRun || skip {
				return nil
			}
			return selfTest(cmd.Context(), c.Store, log, say)
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only say what would be created")
	cmd.Flags().BoolVar(&adopt, "adopt-offsets", false, "let kdedup begin at offsets of its groups that it did not commit")
	cmd.Flags().BoolVar(&accept.emptyStore, "accept-empty-store", false, "let kdedup go on with a store that lacks the claims of what was handled")
	cmd.Flags().BoolVar(&accept.cluster, "share-with-cluster", false, "let the scopes' claims hold for the input of this Kafka cluster, too")
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
	if err := sayIDs(ctx, client, c, log, say); err != nil || dryRun {
		return err
	}
	return each(entriesOf(c.Topics), func(e *entry) error { return compareTopics(ctx, client, e.Topic, true, say) })
}

// sayIDs tells how many of the newest records have a message ID. The user of setup may not be allowed to read them.
func sayIDs(ctx context.Context, client *kgo.Client, c config.Config, log *slog.Logger, say func(string)) error {
	connector, err := kafka.NewConnector(ctx, c.Kafka, log)
	if err != nil {
		return err
	}
	for _, e := range entriesOf(c.Topics) {
		n, err := e.lookAtNewest(ctx, client, connector, c, log)
		if err != nil {
			say(fmt.Sprintf("message_id of %s: not looked at: %v", e.Input, err))
			continue
		}
		say(n.String())
	}
	return nil
}

// adoptOffsets makes offsets that run refuses kdedup's own: the operator says that what lies below them is not to be
// forwarded.
func adoptOffsets(ctx context.Context, c config.Config, log *slog.Logger, dryRun bool, say func(string)) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	client, err := adminClient(ctx, c, log)
	if err != nil {
		return err
	}
	defer client.Close()
	return each(entriesOf(c.Topics), func(e *entry) error { return groupOf(e.Topic).Adopt(ctx, client, dryRun, say) })
}
