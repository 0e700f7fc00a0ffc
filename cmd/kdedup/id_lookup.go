package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kdedup/kdedup/cmd/kdedup/internal/lookup"
)

func newIDLookup() *cobra.Command {
	var (
		flags  idFlags
		format string
	)
	cmd := &cobra.Command{
		Use:   "lookup ID",
		Short: "Tell whether an ID was seen, by which record, and whether that was forwarded",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.with(cmd, args[0], func(task *lookup.Question) error {
				found, err := task.Ask(cmd.Context())
				if err != nil {
					return err
				}
				if format == formatJSON {
					return json.NewEncoder(cmd.OutOrStdout()).Encode(found)
				}
				return printAnswer(cmd.OutOrStdout(), found)
			})
		},
	}
	flags.add(cmd)
	addFormat(cmd, &format, formatText, formatJSON)
	return cmd
}

func printAnswer(out io.Writer, found lookup.Answer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range found.Rows() {
		fmt.Fprintf(table, "%s\t%s\n", row.Name, row.Text)
	}
	return table.Flush()
}
