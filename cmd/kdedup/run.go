package main

import (
	"github.com/spf13/cobra"
)

func newRun() *cobra.Command {
	var flags configFlags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the pipelines of a configuration",
		Long: "Run the pipelines until a signal. SIGTERM or SIGINT finish the batches in hand and leave the\n" +
			"consumer groups; a second signal ends the process at once and loses nothing.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, log, err := flags.load(cmd)
			if err != nil {
				return err
			}
			log.Info("kdedup starts", "version", versionText(), "instance", c.Instance)
			p, err := wire(cmd.Context(), c, log)
			if err != nil {
				return err
			}
			defer p.close()
			return p.run(cmd.Context())
		},
	}
	flags.add(cmd)
	return cmd
}
