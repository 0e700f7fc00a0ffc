package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kdedup/kdedup/dedup/embedded"
	"github.com/kdedup/kdedup/process/lookup"
)

func newIDLookup() *cobra.Command {
	var (
		flags  idFlags
		format string
	)
	cmd := &cobra.Command{
		Use:   "lookup ID",
		Short: "Tell whether an ID was seen, by which record, and whether that was forwarded",
		Long: "Tell whether an ID was seen, by which record, and whether that was forwarded. Where " +
			"the store belongs to a\n" +
			"process that runs (embedded), that process is asked, at server.listen. ID may also be " +
			"sha256: and 64\n" +
			"hexadecimal digits, as a long ID is stored.",
		Args: oneID,
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := flags.look(cmd, args[0])
			if err != nil {
				return err
			}
			if format == formatJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(found)
			}
			return printAnswer(cmd.OutOrStdout(), found)
		},
	}
	flags.add(cmd)
	addFormat(cmd, &format, formatText, formatJSON)
	return cmd
}

// oneID wants the ID of a command.
func oneID(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError{fmt.Errorf("%s takes one message ID, got %d: %s", cmd.CommandPath(),
			len(args), cmd.UseLine())}
	}
	return nil
}

// look asks the store, or the process that has it to itself, or has read its log already.
func (f *idFlags) look(cmd *cobra.Command, text string) (found lookup.Answer, err error) {
	q, err := f.asked(cmd, text)
	if err != nil {
		return found, err
	}
	if found, asked := q.askFirst(cmd.Context()); asked {
		return found, nil
	}
	err = q.with(cmd.Context(), func(task *lookup.Question) error {
		found, err = task.Ask(cmd.Context())
		return err
	})
	if errors.Is(err, embedded.ErrUsed) {
		return askProcess(cmd.Context(), q.config, q.topic, q.ids)
	}
	return found, err
}

func printAnswer(out io.Writer, found lookup.Answer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range found.Rows() {
		fmt.Fprintf(table, "%s\t%s\n", row.Name, row.Text)
	}
	return table.Flush()
}
