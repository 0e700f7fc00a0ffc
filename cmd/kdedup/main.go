// Command kdedup removes duplicates from Kafka topics.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes.
const (
	exitStopped = 0 // it did what it was asked to do
	exitFailed  = 1
	exitUsage   = 2 // the command line or the configuration is wrong
)

func main() {
	// After the first signal the second one has its usual effect: it ends the process at once.
	// Nothing is lost then, see docs/guarantees.md.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	surviveBrokenPipes()
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func execute(ctx context.Context, args []string, out, errOut io.Writer) int {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out = &output{to: out, ended: ctx, nobody: cancel}
	errOut = &output{to: errOut, ended: ctx, nobody: func(error) {}} // what it says can be missed
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errOut)
	cmd, err := root.ExecuteContextC(ctx)
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, errNobodyReads) {
		err = cause
	}
	if err == nil {
		return exitStopped
	}
	if !errors.As(err, new(loggedError)) {
		text := err.Error()
		if file := cmd.Flags().Lookup("config"); file != nil {
			text = namedFile(text, file.Value.String())
		}
		fmt.Fprintln(errOut, "kdedup:", text)
	}
	if errors.As(err, new(usageError)) {
		return exitUsage
	}
	return exitFailed
}

// usageError marks what the user has to change before another try makes sense.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }
