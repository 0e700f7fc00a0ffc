package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// grace is what a turn gets beyond the time that all have: the last one may be slower than it was
// guessed.
const grace = 3 * time.Minute

// errNoTime ends a turn without a verdict.
var errNoTime = errors.New("stopped, no time left")

// options are one run.
type options struct {
	out    io.Writer
	proofs []proof
	seed   uint64
	limit  time.Duration // 0: none
	passed *memory
	run    func(ctx context.Context, t turn, seed uint64, limit time.Duration) error
}

// order is that in which the seed has all turns.
func (o *options) order() (turns []turn) {
	for _, p := range o.proofs {
		for n := range p.turns {
			turns = append(turns, turn{p, n + 1})
		}
	}
	rand.New(rand.NewPCG(o.seed, 0)).Shuffle(len(turns), func(i, j int) {
		turns[i], turns[j] = turns[j], turns[i]
	})
	return turns
}

// prove runs what there is time for, tells which part that was, and returns the exit code.
func (o *options) prove(ctx context.Context) int {
	begun, left := time.Now(), o.limit
	var lines []string
	failed, proven := 0, 0
	slow := 1.0 // how much slower than the guesses this machine is
	all := o.order()
	for _, t := range all {
		if o.limit > 0 {
			left = o.limit - time.Since(begun)
		}
		word, took := o.turn(ctx, t, left, slow)
		slow = max(slow, took.Seconds()/t.takes.Seconds())
		switch word {
		case "passed", "before":
			proven++
		case "FAILED":
			failed++
		}
		lines = append(lines, fmt.Sprintf("  %-9s %-16s %s", word, t, duration(took)))
	}
	fmt.Fprintf(o.out, "\nproofs of seed %d, %d of %d turns, %v:\n", o.seed, proven, len(all),
		duration(time.Since(begun)))
	for _, line := range lines {
		fmt.Fprintln(o.out, line)
	}
	switch {
	case failed > 0:
		fmt.Fprintf(o.out, "once more: make proof SEED=%d\n", o.seed)
		return 1
	case proven < len(all):
		fmt.Fprintf(o.out, "the rest: make proof SEED=%d\n", o.seed)
	}
	if ctx.Err() != nil {
		return 1
	}
	return 0
}

// turn runs one, unless it has passed before or does not fit, and says in a word what became of it.
func (o *options) turn(
	ctx context.Context, t turn, left time.Duration, slow float64,
) (word string, took time.Duration) {
	switch {
	case o.passed.has(t):
		return "before", 0
	case ctx.Err() != nil:
		return "no time", 0
	case o.limit > 0 && left.Seconds() < slow*t.takes.Seconds():
		return "no time", 0
	}
	fmt.Fprintf(o.out, "\nproof: %v, seed %d\n", t, o.seed)
	begun := time.Now()
	limit := time.Hour
	if o.limit > 0 {
		limit = left + grace
	}
	err := o.run(ctx, t, o.seed, limit)
	took = time.Since(begun)
	switch {
	case err == nil:
		o.passed.add(t)
		return "passed", took
	case errors.Is(err, errNoTime), ctx.Err() != nil:
		return "no time", took
	}
	fmt.Fprintf(o.out, "proof: %v, seed %d: %v\n", t, o.seed, err)
	return "FAILED", took
}

func duration(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.Round(time.Second).String()
}

const killAfter = 20 * time.Second

// runWithin runs a command to its end. When ctx ends or the time is over, it and all that it
// started get SIGTERM, and a little later SIGKILL.
func runWithin(ctx context.Context, cmd *exec.Cmd, limit time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errNoTime)
	defer cancel()
	signals := make(chan os.Signal, 2)
	ended := make(chan struct{})
	var stopper sync.WaitGroup
	stopper.Go(func() {
		select {
		case <-ended:
			return
		case <-ctx.Done():
			signals <- syscall.SIGTERM
		}
		select {
		case <-ended:
		case <-time.After(killAfter):
			signals <- syscall.SIGKILL
		}
	})
	err := servers.RunCommand(cmd, signals)
	close(ended)
	stopper.Wait()
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
