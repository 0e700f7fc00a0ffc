package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// assignedLine is what the contestants of this repository log when the group gives them
	// partitions.
	assignedLine = `msg="partitions assigned"`

	stopLimit = time.Minute // for a contestant to end after SIGTERM
	tailLines = 15          // of its log, for error messages

	javaStopped = 128 + int(syscall.SIGTERM) // the exit code of a JVM that ended as it was told to
)

// process is a contestant that runs, or one of its processes.
type process struct {
	name     string
	cmd      *exec.Cmd
	started  time.Time
	assigned chan time.Time // one value, when it was given its first partitions
	exited   chan struct{}
	err      error // of the process; read it after exited
	killed   bool  // stop kills it

	mu   sync.Mutex
	tail []string
}

// startProcess runs a command whose log is its standard error; the first line with the text
// assigned tells that it has partitions. The end of ctx stops it.
func startProcess(ctx context.Context, name, assigned string, args ...string) (*process, error) {
	p := &process{name: name, assigned: make(chan time.Time, 1), exited: make(chan struct{})}
	p.cmd = exec.CommandContext(ctx, args[0], args[1:]...)
	p.cmd.Env = withoutSettings(os.Environ())
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = stopLimit
	log, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p.started = time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		defer close(p.exited)
		p.follow(log, assigned)
		p.err = p.cmd.Wait()
	}()
	return p, nil
}

// withoutSettings leaves out what kdedup would take for its configuration.
func withoutSettings(env []string) []string {
	return slices.DeleteFunc(env, func(entry string) bool {
		return strings.HasPrefix(entry, "KDEDUP_")
	})
}

// follow reads the log to its end.
func (p *process) follow(log io.Reader, assigned string) {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if strings.Contains(line, assigned) {
			select {
			case p.assigned <- time.Now():
			default: // not the first time
			}
		}
		p.mu.Lock()
		p.tail = append(p.tail, line)
		p.tail = p.tail[max(0, len(p.tail)-tailLines):]
		p.mu.Unlock()
	}
	_, _ = io.Copy(io.Discard, log) // after a line that was too long
}

// waitAssigned returns when the group gave the process its first partitions.
func (p *process) waitAssigned(ctx context.Context) (time.Time, error) {
	select {
	case at := <-p.assigned:
		return at, nil
	case <-p.exited:
		return time.Time{}, p.failure()
	case <-ctx.Done():
		return time.Time{}, fmt.Errorf("%s joins its group: %w\n%s", p.name, context.Cause(ctx),
			p.log())
	}
}

// failure tells that the process ended by itself.
func (p *process) failure() error {
	return fmt.Errorf("%s ended by itself: %s\n%s", p.name, p.cmd.ProcessState, p.log())
}

func (p *process) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.tail, "\n")
}

func (p *process) over() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// stop asks the process to end and waits for it. It returns the CPU time that the process took from
// its start to its end.
func (p *process) stop() (time.Duration, error) {
	if p.killed {
		_ = p.cmd.Process.Kill()
		<-p.exited
		return p.took(), nil
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may be over
	timer := time.NewTimer(stopLimit)
	defer timer.Stop()
	select {
	case <-p.exited:
	case <-timer.C:
		_ = p.cmd.Process.Kill()
		<-p.exited
		return 0, fmt.Errorf("%s did not end within %v of SIGTERM\n%s", p.name, stopLimit, p.log())
	}
	if p.err != nil && p.cmd.ProcessState.ExitCode() != javaStopped {
		return 0, fmt.Errorf("stop %s: %w\n%s", p.name, p.err, p.log())
	}
	return p.took(), nil
}

// took is the CPU time of a process that has ended.
func (p *process) took() time.Duration {
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
}

// output runs a command to its end and returns what it printed. The end of ctx stops it.
func output(ctx context.Context, args []string) ([]byte, error) {
	var log bytes.Buffer
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = withoutSettings(os.Environ())
	cmd.Stderr = &log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopLimit
	printed, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", args[0], err, log.Bytes()[max(0, log.Len()-2000):])
	}
	return printed, nil
}
