package command

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/kdedup/kdedup/process/build"
)

func newVersion() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version and how it was built",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format == formatJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(build.This())
			}
			return printBuild(cmd, build.This())
		},
	}
	addFormat(cmd, &format, formatText, formatJSON)
	return cmd
}

func versionLine(b build.Info) string {
	return fmt.Sprintf("kdedup %s %s %s", b.Version, b.Go, b.Platform)
}

// printBuild begins with one line that scripts may take apart.
func printBuild(cmd *cobra.Command, b build.Info) error {
	out := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, versionLine(b))
	fmt.Fprintf(out, "module\t%s\n", b.Module)
	if b.Revision != "" {
		fmt.Fprintf(out, "revision\t%s\n", b.Revision)
	}
	if b.Time != nil {
		fmt.Fprintf(out, "committed\t%s\n", b.Time.Format(time.RFC3339))
	}
	if b.Modified != nil {
		fmt.Fprintf(out, "modified\t%v\n", *b.Modified)
	}
	return out.Flush()
}
