package command

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kdedup/kdedup/config"
)

func newConfig() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show the configuration in effect, or the schema of the file",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newConfigPrint(), newConfigSchema())
	return cmd
}

// effective is one setting as `kdedup config print` shows it.
type effective struct {
	Setting string `json:"setting"`
	Value   string `json:"value"`
	// "line 9" of the file, an environment variable, "default", or "derived" from other settings
	From string `json:"from"`
}

func newConfigPrint() *cobra.Command {
	var (
		flags  configFlags
		format string
	)
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Print every setting in effect, and where its value comes from",
		Long: "Print every setting that is in effect, with its value and where that comes from:\n" +
			"a line of the file, an environment variable, or the default. Secrets are hidden.\n" +
			"The settings of stores that are not in use are left out. No server is asked.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, places, err := flags.parse()
			if err != nil {
				return usageError{err}
			}
			var all []effective
			for _, s := range c.Settings() {
				all = append(all, effective{s.Path, s.Value, placeOf(places, s)})
			}
			if format == formatJSON {
				out := json.NewEncoder(cmd.OutOrStdout())
				out.SetIndent("", "  ")
				return out.Encode(all)
			}
			out := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, e := range all {
				fmt.Fprintf(out, "%s\t%s\t%s\n", e.Setting, e.Value, e.From)
			}
			return out.Flush()
		},
	}
	flags.add(cmd)
	addFormat(cmd, &format, formatText, formatJSON)
	return cmd
}

func placeOf(places config.Places, s config.Setting) string {
	if place, found := places[s.Path]; found {
		return place
	}
	if s.Default {
		return "default"
	}
	return "derived" // from other settings, or the host
}

func newConfigSchema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the file, for editors",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(config.Schema())
			return err
		},
	}
}
