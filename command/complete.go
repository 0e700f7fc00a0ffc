package command

import (
	"github.com/spf13/cobra"
)

// complete tells the shell what a flag may be. What cannot be known is not offered.
func complete(cmd *cobra.Command, flag string, values func() []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string,
		cobra.ShellCompDirective) {
		return values(), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // the command has no such flag
	}
}

// addTopic adds --topic, for which it offers the input topics of the configuration that the command
// line names.
func (f *configFlags) addTopic(cmd *cobra.Command, topic *string, usage string) {
	cmd.Flags().StringVar(topic, "topic", "", usage)
	complete(cmd, "topic", func() (inputs []string) {
		c, err := f.read()
		if err != nil {
			return nil
		}
		for _, t := range c.Topics {
			if t.Pattern == "" {
				inputs = append(inputs, t.Input)
			}
		}
		return inputs
	})
}

// completeFile makes the shell offer YAML files.
func completeFile(cmd *cobra.Command) {
	if err := cmd.MarkFlagFilename("config", "yaml", "yml"); err != nil {
		panic(err)
	}
}
