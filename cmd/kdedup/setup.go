package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kdedup/kdedup/cmd/kdedup/internal/wiring"
)

func newSetup() *cobra.Command {
	var (
		flags               configFlags
		dryRun, skip, adopt bool
		accept              wiring.Acceptance
	)
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Create the tables and topics that a configuration needs",
		Long: "Create the keyspace, the tables and the topics that are missing and say what was " +
			"done. Nothing\n" +
			"that exists is changed, so it is safe to repeat. The input topics must exist.\n\n" +
			"Then the store is asked for what kdedup relies on, with a few claims of its own " +
			"that it deletes again,\n" +
			"and what it does is printed. This needs the rights of kdedup run.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, log, err := flags.load(cmd)
			if err != nil {
				return err
			}
			say := func(line string) { fmt.Fprintln(cmd.OutOrStdout(), line) }
			if err := wiring.Setup(cmd.Context(), c, log, dryRun, say); err != nil {
				return err
			}
			if adopt {
				if err := wiring.AdoptOffsets(cmd.Context(), c, log, dryRun, say); err != nil {
					return err
				}
			}
			if accept != (wiring.Acceptance{}) {
				if err := wiring.AcceptStore(
					cmd.Context(), c, log, accept, dryRun, say,
				); err != nil {
					return err
				}
			}
			if dryRun || skip {
				return nil
			}
			return selfTest(cmd.Context(), c, log, say)
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only say what would be created")
	cmd.Flags().BoolVar(&adopt, "adopt-offsets", false,
		"let kdedup begin at offsets of its groups that it did not commit")
	cmd.Flags().BoolVar(&accept.EmptyStore, "accept-empty-store", false,
		"let kdedup go on with a store that lacks the claims of what was handled")
	cmd.Flags().BoolVar(&accept.Cluster, "share-with-cluster", false,
		"let the scopes' claims hold for the input of this Kafka cluster, too")
	cmd.Flags().BoolVar(&skip, "skip-self-test", false,
		"do not ask the store for what kdedup relies on")
	return cmd
}
