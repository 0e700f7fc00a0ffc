package torture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kdedup/kdedup/internal/pause"
)

const (
	// ProcessEnv is the number of a process, for the command that is tortured.
	ProcessEnv = "TORTURE_PROCESS"
	// ProcessArg stands for it in the arguments.
	ProcessArg = "{process}"

	mostEnds  = 10 // how often a process may end by itself, one after the other
	aliveFor  = 10 * time.Second
	restart   = time.Second
	stopLimit = 30 * time.Second
)

// worker is one process of the command, which is started again whenever it ends. Its goroutine owns
// the fields; killed and ended are to be read when run has returned.
type worker struct {
	number int
	args   []string
	kills  chan kill
	step   func(format string, args ...any)

	killed, ended int
}

// kill is an order to a worker.
type kill struct {
	after, down time.Duration // until the process is killed, and until it is started again
	up          chan struct{} // closed when it is started
}

func newWorker(number int, command []string, step func(string, ...any)) *worker {
	w := &worker{number: number, kills: make(chan kill), step: step}
	for _, arg := range command {
		w.args = append(w.args, strings.ReplaceAll(arg, ProcessArg, strconv.Itoa(number)))
	}
	return w
}

// run keeps the process up until ctx ends. A command that only ends is an error.
func (w *worker) run(ctx context.Context) error {
	var up chan struct{}
	for inARow := 0; ctx.Err() == nil; {
		c, err := w.start()
		if err != nil {
			return err
		}
		if up != nil {
			close(up)
			up = nil
		}
		begun := time.Now()
		select {
		case order := <-w.kills:
			pause.For(ctx, order.after)
			c.kill()
			<-c.exited
			w.killed++
			w.step("killed process %d, which stays down for %v", w.number,
				order.down.Round(time.Millisecond))
			inARow, up = 0, order.up
			pause.For(ctx, order.down)
		case <-c.exited:
			c.kill() // what it has started
			w.ended++
			if inARow++; time.Since(begun) > aliveFor {
				inARow = 1
			}
			w.step("process %d ended by itself: %v", w.number, c.cmd.ProcessState)
			if inARow == mostEnds {
				return fmt.Errorf("process %d ended by itself %d times, the last time with %v:\n%s",
					w.number, inARow, c.cmd.ProcessState, c.log.String())
			}
			pause.For(ctx, restart)
		case <-ctx.Done():
			c.stop()
		}
	}
	return nil
}

// child is a process with its descendants.
type child struct {
	cmd    *exec.Cmd
	log    *tail
	exited chan struct{}
}

func (w *worker) start() (*child, error) {
	c := &child{cmd: exec.Command(w.args[0], w.args[1:]...), log: &tail{},
		exited: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", ProcessEnv, w.number))
	c.cmd.Stdout, c.cmd.Stderr = c.log, c.log
	c.cmd.WaitDelay = stopLimit // a descendant may keep the pipes
	c.lead()
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start process %d: %w", w.number, err)
	}
	go func() {
		defer close(c.exited)
		_ = c.cmd.Wait() // the state says how it ended
	}()
	return c, nil
}

// stop asks the process to end, and kills it if it does not.
func (c *child) stop() {
	c.ask()
	timer := time.NewTimer(stopLimit)
	defer timer.Stop()
	select {
	case <-c.exited:
	case <-timer.C:
	}
	c.kill()
	<-c.exited
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

const mostTail = 4096

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b...)
	t.kept = t.kept[max(0, len(t.kept)-mostTail):]
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.kept))
}

// ErrNoCommand is returned by Find.
var ErrNoCommand = errors.New("there is no command")

// Find tells whether the command can be started.
func Find(command []string) error {
	if len(command) == 0 {
		return ErrNoCommand
	}
	_, err := exec.LookPath(command[0])
	return err
}
