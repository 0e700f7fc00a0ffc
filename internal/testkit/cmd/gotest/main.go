// Command gotest runs `go test` with the arguments that it is given, prints what that would print,
// and ends with what a reader of its last lines must know: what was not tested, and how to have it
// tested.
//
//	go run ./internal/testkit/cmd/gotest [-slowest N] [-again] -- -race ./...
//
// A test that lacks something of the machine says so (see package skip). With CI=true any skipped
// test is a failure, unless its reason lies in what it tests. The exit code is that of `go test`,
// or 1.
//
// With -again, a few tests that failed run again by themselves, and are told as unsteady if they
// pass (see again.go).
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/kdedup/kdedup/internal/testkit/servers"
	"github.com/kdedup/kdedup/internal/testkit/skip"
)

func main() {
	slowest := flag.Int("slowest", 0, "also list the `n` tests that took longest")
	again := flag.Bool("again", false, "run a few tests that failed again, by themselves")
	flag.Parse()
	os.Exit(run(flag.Args(), *slowest, *again))
}

func run(args []string, slowest int, again bool) int {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)

	report := newReport(os.Stdout, verbose(args))
	goTest := func(args []string) error {
		events := &lineWriter{line: report.line}
		cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, events, os.Stderr
		defer events.flush()
		return servers.RunCommand(cmd, signals)
	}
	err := goTest(args)
	if again && err != nil {
		err = report.again(err, args, goTest)
	}
	report.summary(slowest)
	return exitCode(err, report, skip.Forbidden())
}

// verbose says whether the arguments ask for the output of tests that pass.
func verbose(args []string) bool {
	for _, arg := range args {
		switch arg {
		case "-args", "--args":
			return false
		case "-v", "--v", "-v=true", "-test.v":
			return true
		}
	}
	return false
}

func exitCode(err error, r *report, forbidden bool) int {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Exited() {
		return exit.ExitCode()
	}
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "gotest:", err)
		return 1
	case forbidden && r.skipped():
		fmt.Fprintln(os.Stderr, "gotest: with CI=true no test may be skipped")
		return 1
	}
	return 0
}
