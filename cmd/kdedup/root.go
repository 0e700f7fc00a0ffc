package main

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/kdedup/kdedup/cmd/kdedup/internal/process"
	"github.com/kdedup/kdedup/cmd/kdedup/internal/wiring"
	"github.com/kdedup/kdedup/config"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "kdedup",
		Short: "Forward every Kafka message exactly once",
		Long: "kdedup reads Kafka topics, claims each message ID in a store, and " +
			"forwards the first copy\nof each message to a clean topic. See " +
			"https://github.com/kdedup/kdedup.",
		SilenceErrors: true, // printed once, in execute
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{err}
	})
	root.AddCommand(newRun(), newValidate(), newSetup(), newReport(), newBackfill(), newID(),
		newSkip(), newDemo(), newBench(), newReady(), newVersion(), newMan())
	markUsage(root)
	return root
}

// markUsage makes wrong arguments of all commands usage errors.
func markUsage(cmd *cobra.Command) {
	cmd.Args = usageArgs(cmd.Args)
	for _, sub := range cmd.Commands() {
		markUsage(sub)
	}
}

// usageArgs makes wrong arguments a usage error.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{err}
		}
		return nil
	}
}

// configFlags are the flags of the commands that read the configuration.
type configFlags struct {
	path     string
	instance string
}

func (f *configFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.path, "config", "c", "kdedup.yaml", "the configuration `FILE`")
	cmd.Flags().StringVar(&f.instance, "instance", "",
		"`NAME` of this process, in place of the configured one")
	completeFile(cmd)
}

// read reads the configuration.
func (f *configFlags) read() (config.Config, error) {
	env := os.Environ()
	if f.instance != "" {
		env = append(env, config.EnvName("instance")+"="+f.instance)
	}
	return config.Load(f.path, env)
}

// load reads the configuration and makes the logger that it asks for.
func (f *configFlags) load(cmd *cobra.Command) (config.Config, *slog.Logger, error) {
	c, log, _, err := f.loadLevel(cmd)
	return c, log, err
}

// loadLevel is load with the logger's level.
func (f *configFlags) loadLevel(
	cmd *cobra.Command,
) (config.Config, *slog.Logger, *slog.LevelVar, error) {
	c, err := f.read()
	if err != nil {
		return config.Config{}, nil, nil, usageError{err}
	}
	log, level := process.NewLogger(c.Log, cmd.ErrOrStderr())
	for _, name := range c.UnknownEnv {
		log.Warn("environment variable overrides no setting", "name", name)
	}
	return c, log, level, nil
}

// chooseTopic finds the entry that --topic names.
func chooseTopic(topics []config.Topic, input string) (config.Topic, error) {
	t, err := wiring.FindTopic(topics, input)
	if err != nil {
		return t, usageError{fmt.Errorf("--topic %w", err)}
	}
	return t, nil
}
