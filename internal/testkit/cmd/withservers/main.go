// Command withservers runs a command with real servers to test against:
//
//	go run ./internal/testkit/cmd/withservers [flags] -- go test ./...
//
// A server whose address the environment holds already (KDEDUP_TEST_KAFKA, KDEDUP_TEST_CASSANDRA,
// KDEDUP_TEST_CASSANDRA_V1, KDEDUP_TEST_POSTGRES) is used as it is. The others are started, with a
// container engine or as programs, and stopped when the command has ended. Where neither is
// possible the command runs without them, and its tests are skipped; with CI=true that is a
// failure.
//
// The exit code is the command's.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// Exit codes beside those of the command.
const (
	exitFailed = 1
	exitUsage  = 2
)

// startLimit is for all servers together, with the first download of what they consist of.
const startLimit = 15 * time.Minute

func main() {
	o, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(0)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "withservers:", err)
		os.Exit(exitUsage)
	}
	o.ci = os.Getenv("CI") == "true"
	o.getenv = os.Getenv
	os.Exit(o.run())
}

// options are one run: what to start, how, and for which command.
type options struct {
	want    []kind
	engines []engine // in order of preference
	dir     string   // data and logs; empty for a temporary one
	command []string
	ci      bool // nothing may be skipped
	getenv  func(string) string
	stdout  *os.File // the command's
	stderr  io.Writer
}

func parse(args []string, stderr *os.File) (*options, error) {
	o := &options{stdout: os.Stdout, stderr: stderr}
	flags := flag.NewFlagSet("withservers", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintln(stderr, "usage: withservers [flags] -- COMMAND [ARGUMENT]...")
		flags.PrintDefaults()
	}
	names := flags.String("with", "kafka,cassandra,cassandra-v1,postgres",
		"the `servers` that the command needs")
	using := flags.String("using", "docker,java,programs",
		"how to start them, the first `way` that works here")
	flags.StringVar(&o.dir, "dir", "",
		"keep data and logs in this `directory` (default: a temporary one, removed at the end)")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	o.command = flags.Args()
	if len(o.command) == 0 {
		return nil, errors.New("no command: usage: withservers [flags] -- COMMAND [ARGUMENT]")
	}
	var err error
	if o.want, err = choose("-with", *names, kinds, func(k kind) string {
		return k.name
	}); err != nil {
		return nil, err
	}
	o.engines, err = choose("-using", *using, engines, func(e engine) string { return e.name })
	return o, err
}

// choose returns those of all that a comma-separated list names, in the order of the list.
func choose[T any](option, list string, all []T, name func(T) string) ([]T, error) {
	var chosen []T
	for n := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(all, func(t T) bool { return name(t) == n })
		if i < 0 {
			return nil, fmt.Errorf("%s: unknown %q", option, n)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// run returns the exit code. Nothing that it started runs any more when it returns.
func (o *options) run() int {
	// For the command: it decides what a signal means. Before and after it a signal only ends a
	// start; a stop always runs to its end.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)

	fleet, err := o.start()
	defer o.stop(fleet)
	if err != nil {
		o.say("%v", err)
		return exitFailed
	}
	cmd := exec.Command(o.command[0], o.command[1:]...)
	cmd.Env = append(os.Environ(), fleet.env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, o.stdout, os.Stderr
	return o.exitCode(servers.RunCommand(cmd, signals))
}

func (o *options) start() (*fleet, error) {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	ctx, cancelTimeout := context.WithTimeoutCause(ctx, startLimit,
		fmt.Errorf("not all servers started within %v", startLimit))
	defer cancelTimeout()
	return o.startFleet(ctx)
}

// exitCode is as a shell's: 128 and the signal for a command that a signal ended.
func (o *options) exitCode(err error) int {
	if err == nil {
		return 0
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		o.say("%v", err)
		return exitFailed
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return exit.ExitCode()
}

func (o *options) say(format string, args ...any) {
	fmt.Fprintf(o.stderr, "withservers: "+format+"\n", args...)
}
