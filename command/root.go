package command

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/config/editdistance"
	"github.com/kdedup/kdedup/connect"
	"github.com/kdedup/kdedup/process/build"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "kdedup",
		Short: "Forward every Kafka message exactly once",
		Long: "kdedup reads Kafka topics, claims each message ID in a store, and " +
			"forwards the first copy\nof each message to a clean topic. See " +
			"https://github.com/kdedup/kdedup.",
		SilenceErrors:              true, // printed once, in execute
		SilenceUsage:               true,
		SuggestionsMinimumDistance: 2,
		Version:                    build.Version(),
		Args:                       knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	root.SetVersionTemplate(versionLine(build.This()) + "\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{plainly(cmd, err)}
	})
	root.AddCommand(newInit(readsTerminal), newRun(), newServe(), newValidate(), newConfig(),
		newSetup(), newReport(), newBackfill(), newMigrate(), newID(), newSkip(), newRedrive(),
		newOffsets(), newDemo(), newBench(), newTorture(), newReady(), newStatus(), newBundle(),
		newVersion(), newMan())
	markUsage(root)
	return root
}

// knownCommand refuses words that are no command, with those that may be meant.
func knownCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("unknown command %q; kdedup --help lists all", args[0])
	if near := root.SuggestionsFor(args[0]); len(near) > 0 {
		err = fmt.Errorf("unknown command %q; did you mean %s?", args[0],
			strings.Join(near, " or "))
	}
	return err
}

// plainly says what a flag must be in place of what the parser of numbers says, and which one a
// wrong name may stand for.
func plainly(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		return unknownFlag(cmd, unknown)
	}
	var wrong *pflag.InvalidValueError
	if !errors.As(err, &wrong) {
		return err
	}
	var number *strconv.NumError
	must := strings.TrimPrefix(wrong.Unwrap().Error(), "time: ")
	switch kind := wrong.GetFlag().Value.Type(); {
	case kind == "duration":
		must = "must be a duration such as 30s or 1h30m"
	case kind == "bool":
		must = "must be true or false"
	case errors.As(wrong, &number) && errors.Is(number.Err, strconv.ErrRange):
		must = "is out of range"
	case errors.As(wrong, &number):
		must = "must be a whole number"
	}
	return fmt.Errorf("--%s %s, got %q", wrong.GetFlag().Name, must, wrong.GetValue())
}

// unknownFlag names the flag that is written like the wrong one, or has its name for a value, as
// --format has html.
func unknownFlag(cmd *cobra.Command, unknown *pflag.NotExistError) error {
	name := unknown.GetSpecifiedName()
	var names []string
	best := ""
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
		if slices.Contains(choicesOf(f), name) {
			best = f.Name + " " + name
		}
	})
	if best == "" {
		best = editdistance.Closest(name, names, func(flag string) string { return flag })
	}
	if best == "" {
		return fmt.Errorf("%w; %s --help lists all", unknown, cmd.CommandPath())
	}
	return fmt.Errorf("%w; did you mean --%s?", unknown, best)
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

// chooseTopic finds the entry that --topic names.
func chooseTopic(topics []config.Topic, input string) (config.Topic, error) {
	t, err := connect.FindTopic(topics, input)
	if err != nil {
		return t, usageError{fmt.Errorf("--topic %w", err)}
	}
	return t, nil
}
