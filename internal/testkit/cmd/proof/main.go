// Command proof runs the proofs that take too long for every change, in turns:
//
//	withservers -- proof [-seed N] [-for 20m] [-only NAME] [-again]
//
// The seed decides in which order the turns come, and which schedule chaos follows. It is the
// commit's by default, so that runs of different commits which have not the time for all of them
// prove different turns. What has passed is kept in a file, for the state of the sources and the
// seed, and is not run again. A turn that does not fit into the time that is left is not begun.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	o := options{out: os.Stdout, proofs: proofs, run: goTest}
	seed := flag.Uint64("seed", 0, "`number` that decides the order; default: the commit's")
	flag.DurationVar(&o.limit, "for", 0,
		"begin no turn that does not fit into this `time`; default: run all")
	only := flag.String("only", "", "run the turns of these `proofs` only: "+
		strings.Join(names(proofs), ", "))
	again := flag.Bool("again", false, "also run what has passed before")
	file := flag.String("passed", "bin/proof.passed", "`file` that remembers what has passed")
	flag.Parse()

	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	var err error
	if o.proofs, err = choose(proofs, *only); err != nil {
		fmt.Fprintln(os.Stderr, "proof:", err)
		os.Exit(2)
	}
	state := readState(ctx)
	o.seed = *seed
	if o.seed == 0 {
		o.seed = state.seed
	}
	o.passed = readMemory(*file, state.sources, o.seed)
	if *again {
		o.passed.forget()
	}
	os.Exit(o.prove(ctx))
}

// goTest runs a turn as a command; the end of the time or of ctx ends it with all that it started.
func goTest(ctx context.Context, t turn, seed uint64, limit time.Duration) error {
	return runWithin(ctx, t.command(seed), limit)
}
