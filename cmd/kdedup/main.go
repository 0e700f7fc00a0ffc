// Command kdedup removes duplicates from Kafka topics.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/kdedup/kdedup/command"
)

func main() {
	// After the first signal the second one has its usual effect: it ends the process at once.
	// Nothing is lost then, see docs/guarantees.md.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	command.SurviveBrokenPipes()
	os.Exit(command.Execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
