package command

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/kdedup/kdedup/process/build"
)

// newMan is for those who make packages. It is not among the commands that help shows.
func newMan() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIRECTORY",
		Short: "Write the manual pages",
		Long: "Write a manual page for each command into a directory. Where the commit is not\n" +
			"known, SOURCE_DATE_EPOCH is their date.",
		Args:   cobra.ExactArgs(1),
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("manual pages: %w", err)
			}
			header := &doc.GenManHeader{
				Section: "1", Source: "kdedup " + build.Version(), Manual: "kdedup",
				// of the commit, so that the same source makes the same pages; nil is today
				Date: build.This().Time,
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return fmt.Errorf("manual pages: %w", err)
			}
			return nil
		},
	}
}
