package command

import (
	"context"
	"fmt"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/spf13/cobra"

	"github.com/kdedup/kdedup/internal/telemetry"
	"github.com/kdedup/kdedup/process"
	"github.com/kdedup/kdedup/process/build"
)

func newServe() *cobra.Command {
	flags := configFlags{apiAlone: true}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Answer the API of a configuration, for programs in any language",
		Long: "Answer the API that the section api of the configuration describes, until a signal: " +
			"gRPC, gRPC-Web and JSON over\n" +
			"HTTP on one port. The pipelines of the file do not run. While a start cannot reach " +
			"the store, it tries again;\n" +
			"/readyz says why it waits. See docs/api.md.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log := newRunLog(behind(cmd.ErrOrStderr()), flags.named)
			defer log.lines.Close(logPatience)
			return serve(cmd.Context(), &flags, log)
		},
	}
	flags.add(cmd)
	return cmd
}

func serve(ctx context.Context, flags *configFlags, to *runLog) error {
	c, log, _, err := flags.loadLevel(to.lines)
	if err == nil && len(c.API.Scopes) == 0 {
		err = usageError{fmt.Errorf("config %s: api.scopes: is required for kdedup serve, at least "+
			"one entry", flags.name())}
	}
	if err != nil {
		return to.ended(err)
	}
	to.settings.Store(&c.Log)
	process.ContainMemory(log, memlimit.FromCgroup)
	log.Info("kdedup serves", "version", build.Version(), "file", flags.name(), "hash",
		process.ConfigHash(c))
	warnOfUnencrypted(c, log)
	return to.ended(func() error {
		s, err := process.NewServing(c, log)
		if err != nil {
			return err
		}
		defer s.Close()
		telemetry.LogLines(s.Registry(), to.lines.Dropped)
		return s.Run(ctx)
	}())
}
