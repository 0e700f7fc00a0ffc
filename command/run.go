package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/spf13/cobra"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/internal/telemetry"
	"github.com/kdedup/kdedup/process"
	"github.com/kdedup/kdedup/process/build"
	"github.com/kdedup/kdedup/process/logqueue"
)

func warnOfUnencrypted(c config.Config, log *slog.Logger) {
	for _, setting := range c.Unencrypted() {
		log.Warn("a secret crosses the network unencrypted",
			"setting", setting, "hint", "enable tls beside it")
	}
}

func newRun() *cobra.Command {
	var flags configFlags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the pipelines of a configuration",
		Long: "Run the pipelines until a signal. On SIGTERM or SIGINT the lanes finish the batch " +
			"in hand and leave\n" +
			"their consumer groups. On a second signal the process ends at once, and loses " +
			"nothing. On SIGHUP, and\n" +
			"when the file changes, kdedup starts, stops and changes pipelines; those that stay " +
			"the same go on\n" +
			"undisturbed.\n\n" +
			"While a start cannot reach Kafka or the store, it tries again; /readyz says why it " +
			"waits.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log := newRunLog(behind(cmd.ErrOrStderr()), flags.named)
			defer log.lines.Close(logPatience)
			return run(cmd.Context(), &flags, log)
		},
	}
	flags.add(cmd)
	return cmd
}

// logPatience is how long the end of a process waits for the reader of its last lines.
const logPatience = 2 * time.Second

func run(ctx context.Context, flags *configFlags, to *runLog) error {
	// several ask for the same as one: the file is read after them
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	c, log, level, err := flags.loadLevel(to.lines)
	if err != nil {
		return to.ended(err)
	}
	to.settings.Store(&c.Log)
	process.ContainMemory(log, memlimit.FromCgroup)
	defer process.LimitMemory(c)()
	log.Info("kdedup starts", "version", build.Version(), "instance", c.Instance,
		"file", flags.name(), "hash", process.ConfigHash(c))
	warnOfUnencrypted(c, log)
	return to.ended(func() error {
		p, err := process.New(c, log, level)
		if err != nil {
			return err
		}
		defer p.Close()
		telemetry.LogLines(p.Registry(), to.lines.Dropped)
		return p.Run(ctx, process.NewConfigFile(flags.read, hangup, process.WatchEvery, c))
	}())
}

// runLog is the log of a run: its lines wait for their reader, the run does not.
type runLog struct {
	lines    *logqueue.Queue
	settings atomic.Pointer[config.Log]
	naming   func(string) string
}

func newRunLog(to io.Writer, naming func(string) string) *runLog {
	l := &runLog{naming: naming}
	usual := config.Default().Log
	l.settings.Store(&usual)
	l.lines = logqueue.New(to, l.dropped)
	return l
}

// dropped is the line that stands for lines which nobody has read.
func (l *runLog) dropped(lines uint64) []byte {
	var line bytes.Buffer
	log, level := process.NewLogger(*l.settings.Load(), &line, nil)
	level.Set(slog.LevelWarn)
	log.Warn("lines of the log were dropped: its reader was too slow, stood still or was gone",
		"lines", lines)
	return line.Bytes()
}

// loggedError was told as the last line of the log.
type loggedError struct{ error }

func (e loggedError) Unwrap() error { return e.error }

// ended tells why a run ends, by the log, because that waits for nobody. In a log of JSON it is a
// record, too: a line of another form would be lost on its readers.
func (l *runLog) ended(err error) error {
	if err == nil {
		return nil
	}
	if settings := *l.settings.Load(); settings.Format == "json" {
		log, _ := process.NewLogger(settings, l.lines, l.naming)
		log.Error("kdedup ends", "error", err)
	} else {
		fmt.Fprintln(l.lines, "kdedup:", l.naming(err.Error()))
	}
	return loggedError{err}
}
