package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// errNobodyReads ends a command whose output has lost its reader.
var errNobodyReads = errors.New("nobody reads the output any more")

// SurviveBrokenPipes has writes to a pipe without a reader fail, also those to standard output and
// standard error, for which Go's runtime would end the process. Programs that kdedup starts are not
// touched by that.
func SurviveBrokenPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// outputPatience is how long a write waits for its reader once the command has been told to end.
const outputPatience = time.Second

// output is where a command writes. A reader that stands still holds up the command, as everywhere,
// but not its end. Without a reader a command ends as by a signal, at a place where it can.
type output struct {
	to     io.Writer
	ended  context.Context
	nobody func(error) // hears that there is no reader any more
	stuck  atomic.Bool // a write stands, and no other may begin
}

// behind is what an output writes to.
func behind(out io.Writer) io.Writer {
	if o, ok := out.(*output); ok {
		return o.to
	}
	return out
}

func (o *output) Write(text []byte) (int, error) {
	if o.stuck.Load() {
		return 0, errNobodyReads
	}
	type outcome struct {
		n   int
		err error
	}
	done := make(chan outcome, 1)
	own := append([]byte(nil), text...) // the write may outlast this call
	go func() {
		n, err := o.to.Write(own)
		done <- outcome{n, err}
	}()
	given := func(r outcome) (int, error) {
		if errors.Is(r.err, syscall.EPIPE) {
			o.nobody(errNobodyReads)
		}
		return r.n, r.err
	}
	select {
	case r := <-done:
		return given(r)
	case <-o.ended.Done():
	}
	timer := time.NewTimer(outputPatience)
	defer timer.Stop()
	select {
	case r := <-done:
		return given(r)
	case <-timer.C:
		o.stuck.Store(true)
		return 0, fmt.Errorf("write the output: %w", errNobodyReads)
	}
}
