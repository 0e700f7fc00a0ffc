package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

// version is set by the linker for releases.
var version = ""

func newVersion() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version and how it was built",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch format {
			case "json":
				return json.NewEncoder(cmd.OutOrStdout()).Encode(thisBuild())
			case "text":
				return thisBuild().print(cmd)
			}
			return usageError{fmt.Errorf("--format must be text or json, got %q", format)}
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "`FORMAT` of the output, text or json")
	complete(cmd, "format", func() []string { return []string{"text", "json"} })
	return cmd
}

// build is what is known about this binary. The Go tool records the commit where it finds one.
type build struct {
	Version  string     `json:"version"`
	Module   string     `json:"module"`
	Revision string     `json:"revision,omitempty"`
	Time     *time.Time `json:"time,omitempty"` // of the commit
	Modified *bool      `json:"modified,omitempty"`
	Go       string     `json:"go"`
	Platform string     `json:"platform"`
}

func thisBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return buildOf(info)
}

func buildOf(info *debug.BuildInfo) build {
	b := build{Version: version, Module: info.Main.Path, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if b.Version == "" {
		b.Version = info.Main.Version
	}
	if b.Version == "" {
		b.Version = "(devel)"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			modified := s.Value == "true"
			b.Modified = &modified
		case "vcs.time":
			if at, err := time.Parse(time.RFC3339, s.Value); err == nil {
				b.Time = &at
			}
		}
	}
	return b
}

// print begins with one line that scripts may take apart.
func (b build) print(cmd *cobra.Command) error {
	out := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "kdedup %s %s %s\n", b.Version, b.Go, b.Platform)
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

// short is the revision on the status page.
func (b build) short() string {
	text := b.Revision[:min(len(b.Revision), 12)]
	if text != "" && b.Modified != nil && *b.Modified {
		text += ", changed"
	}
	return text
}

func versionText() string { return thisBuild().Version }
