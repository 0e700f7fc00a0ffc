package main

import (
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/spf13/cobra"

	"github.com/kdedup/kdedup/cmd/kdedup/internal/build"
	"github.com/kdedup/kdedup/cmd/kdedup/internal/process"
	"github.com/kdedup/kdedup/config"
)

func warnOfUnencrypted(c config.Config, log *slog.Logger) {
	for _, setting := range c.Unencrypted() {
		log.Warn("a secret crosses the network unencrypted",
			"setting", setting, "hint", "enable tls beside it")
	}
}

func newRun() *cobra.Command {
	var flags configFlags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the pipelines of a configuration",
		Long: "Run the pipelines until a signal. On SIGTERM or SIGINT the lanes finish the batch " +
			"in hand and leave\n" +
			"their consumer groups. On a second signal the process ends at once, and loses " +
			"nothing. On SIGHUP, and\n" +
			"when the file changes, kdedup starts, stops and changes pipelines; those that stay " +
			"the same go on\n" +
			"undisturbed.\n\n" +
			"While a start cannot reach Kafka or the store, it tries again; /readyz says why it " +
			"waits.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// several ask for the same as one: the file is read after them
			hangup := make(chan os.Signal, 1)
			signal.Notify(hangup, syscall.SIGHUP)
			defer signal.Stop(hangup)
			c, log, level, err := flags.loadLevel(cmd)
			if err != nil {
				return err
			}
			process.ContainMemory(log, memlimit.FromCgroup)
			defer process.LimitMemory(c.Store.Type)()
			log.Info("kdedup starts", "version", build.Version(), "instance", c.Instance,
				"file", flags.name(), "hash", process.ConfigHash(c))
			warnOfUnencrypted(c, log)
			return ended(log, c.Log, func() error {
				p, err := process.New(c, log, level)
				if err != nil {
					return err
				}
				defer p.Close()
				return p.Run(cmd.Context(),
					process.NewConfigFile(flags.read, hangup, process.WatchEvery, c))
			}())
		},
	}
	flags.add(cmd)
	return cmd
}

// loggedError was told as a record of the log.
type loggedError struct{ error }

func (e loggedError) Unwrap() error { return e.error }

// ended tells why a run ends. In a log of JSON that is a record, too: a line of another form would
// be lost on its readers.
func ended(log *slog.Logger, c config.Log, err error) error {
	if err == nil || c.Format != "json" {
		return err
	}
	log.Error("kdedup ends", "error", err)
	return loggedError{err}
}
