// Package command has what kdedup does: a file for each command, beside the work of its own.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Exit codes.
const (
	exitStopped = 0 // it did what it was asked to do
	exitFailed  = 1
	exitUsage   = 2 // the command line or the configuration is wrong
)

// Execute runs the command of the arguments until it has ended or ctx does, and returns the exit
// code.
func Execute(ctx context.Context, args []string, out, errOut io.Writer) int {
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
