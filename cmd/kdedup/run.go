package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func newRun() *cobra.Command {
	var flags configFlags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the pipelines of a configuration",
		Long: "Run the pipelines until a signal. SIGTERM or SIGINT finish the batches in hand and leave the\n" +
			"consumer groups; a second signal ends the process at once and loses nothing. SIGHUP, or a change\n" +
			"of the file, starts, stops and changes pipelines; those that stay the same are not disturbed.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			hangup := make(chan os.Signal, 1) // several ask for the same as one: the file is read after them
			signal.Notify(hangup, syscall.SIGHUP)
			defer signal.Stop(hangup)
			c, log, level, err := flags.loadLevel(cmd)
			if err != nil {
				return err
			}
			defer limitMemory(c.Store.Type)()
			log.Info("kdedup starts", "version", versionText(), "instance", c.Instance)
			p, err := wire(cmd.Context(), c, log, level)
			if err != nil {
				return err
			}
			defer p.close()
			return p.run(cmd.Context(), newConfigFile(flags.read, hangup, watchEvery, c))
		},
	}
	flags.add(cmd)
	return cmd
}
