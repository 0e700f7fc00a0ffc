package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kdedup/kdedup/connect"
)

const setupHelp = `Create the keyspace, the tables and the topics that are missing, and say so.
The input topics must exist. Setup is safe to repeat. It changes only two things that exist: it
adds partitions to a fence topic whose input has got more, and it raises the retention of a claim
log that is too short for a ttl.

Then setup tests the store: it makes a few claims of its own, prints how the store answers, and
deletes them. This needs the rights of kdedup run.`

func newSetup() *cobra.Command {
	var (
		flags               = configFlags{apiAlone: true}
		dryRun, skip, adopt bool
		accept              connect.Acceptance
	)
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Create the tables and topics that a configuration needs",
		Long:  setupHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, log, err := flags.load(cmd)
			if err != nil {
				return err
			}
			say := func(line string) { fmt.Fprintln(cmd.OutOrStdout(), line) }
			if c, err = connect.ExpandFor(cmd.Context(), c, log, say); err != nil {
				return err
			}
			if err := connect.Setup(cmd.Context(), c, log, dryRun, say); err != nil {
				return err
			}
			if adopt && len(c.Topics) > 0 {
				if err := connect.AdoptOffsets(cmd.Context(), c, log, dryRun, say); err != nil {
					return err
				}
			}
			if accept != (connect.Acceptance{}) && len(c.Topics) > 0 {
				if err := connect.AcceptStore(
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
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only say what setup would create or change")
	cmd.Flags().BoolVar(&adopt, "adopt-offsets", false,
		"let kdedup begin at offsets of its groups that it did not commit")
	cmd.Flags().BoolVar(&accept.EmptyStore, "accept-empty-store", false,
		"let kdedup go on with a store that lacks the claims of what was handled")
	cmd.Flags().BoolVar(&accept.Cluster, "share-with-cluster", false,
		"let the scopes' claims hold for the input of this Kafka cluster, too")
	cmd.Flags().BoolVar(&skip, "skip-self-test", false,
		"do not test the store")
	return cmd
}
