package command

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The forms of what a command prints.
const (
	formatText  = "text"
	formatTable = "table"
	formatJSON  = "json"
	formatHTML  = "html"
)

// addFormat adds --format, of which the first form is the default. --json is short for --format
// json.
func addFormat(cmd *cobra.Command, format *string, forms ...string) {
	*format = forms[0]
	addChoice(cmd, format, "format", "`FORM` of the output", forms...)
	if slices.Contains(forms, formatJSON) {
		cmd.Flags().BoolFunc("json", "short for --format json", func(text string) error {
			on, err := strconv.ParseBool(text)
			if err != nil {
				return errors.New("must be true or false")
			}
			if on {
				*format = formatJSON
			}
			return nil
		})
	}
}

// addChoice adds a flag that takes one of a few words, with which the usage ends.
func addChoice(cmd *cobra.Command, to *string, name, usage string, words ...string) {
	cmd.Flags().Var(&choice{to, words}, name, usage+": "+oneOf(words))
	complete(cmd, name, func() []string { return words })
}

// choice implements pflag.Value.
type choice struct {
	to    *string
	words []string
}

func (c *choice) String() string { return *c.to }
func (c *choice) Type() string   { return "string" }

func (c *choice) Set(word string) error {
	if !slices.Contains(c.words, word) {
		return errors.New("must be " + oneOf(c.words))
	}
	*c.to = word
	return nil
}

// choicesOf are the words that a flag takes; nil if it takes others.
func choicesOf(f *pflag.Flag) []string {
	if c, is := f.Value.(*choice); is {
		return c.words
	}
	return nil
}

// oneOf is "a, b or c".
func oneOf(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
