package servers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// orphanCheck is how often a process looks whether its starter lost its own parent.
const orphanCheck = 500 * time.Millisecond

// process is a child process, the leader of its own process group: a Ctrl-C in the terminal does
// not reach it, and a signal reaches its children too.
type process struct {
	cmd  *exec.Cmd
	stop syscall.Signal // asks it to end
	done chan struct{}  // closed when the process has ended and err is set
	err  error
}

// startProcess starts cmd. If this process dies, the system sends orphaned to the child.
func startProcess(cmd *exec.Cmd, orphaned syscall.Signal) (*process, error) {
	p := &process{cmd: cmd, stop: syscall.SIGTERM, done: make(chan struct{})}
	attr := childAttr(orphaned)
	if cmd.SysProcAttr != nil {
		attr.Credential = cmd.SysProcAttr.Credential
	}
	cmd.SysProcAttr = attr
	started := make(chan error)
	go p.own(started)
	if err := <-started; err != nil {
		return nil, err
	}
	go p.watchParent(os.Getppid(), orphaned)
	return p, nil
}

// own starts the child and waits for it on one thread: the system takes the end of the thread that
// started a child for the end of its parent.
func (p *process) own(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.err = p.cmd.Wait()
	close(p.done)
}

// watchParent ends the child when this process is orphaned, as a test binary is by a killed go
// test.
func (p *process) watchParent(parent int, sig syscall.Signal) {
	tick := time.NewTicker(orphanCheck)
	defer tick.Stop()
	for {
		select {
		case <-p.done:
			return
		case <-tick.C:
			if os.Getppid() != parent {
				_ = p.signal(sig)
				return
			}
		}
	}
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

var errNotRunning = errors.New("not running")

// signal reaches the whole process group.
func (p *process) signal(sig syscall.Signal) error {
	if !p.running() {
		return errNotRunning
	}
	return syscall.Kill(-p.cmd.Process.Pid, sig)
}

// signalAll reaches children in groups of their own too, as PostgreSQL's are.
func (p *process) signalAll(sig syscall.Signal) error {
	if !p.running() {
		return errNotRunning
	}
	children := descendants(p.cmd.Process.Pid)
	err := p.signal(sig)
	for _, pid := range children {
		_ = syscall.Kill(pid, sig) // it may have ended
	}
	return err
}

// terminate asks the process to end and waits for it. After the grace it is killed, which is an
// error.
func (p *process) terminate(grace time.Duration) error {
	if !p.running() {
		return nil
	}
	_ = p.signal(p.stop)
	_ = p.signalAll(syscall.SIGCONT) // a paused process sees the signal only when it goes on
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		p.kill()
		return fmt.Errorf("still running %v after %v, killed", grace, p.stop)
	}
}

// kill stops the process first, so that it starts no child while its children are looked for, and
// returns when all are gone: PostgreSQL does not start while a process of the killed one has its
// shared memory.
func (p *process) kill() {
	if !p.running() {
		return // its number may be another's by now
	}
	pid := p.cmd.Process.Pid
	_ = p.signal(syscall.SIGSTOP)
	awaitState(pid, stopped+ended)
	children := descendants(pid)
	_ = p.signalAll(syscall.SIGKILL)
	<-p.done
	for _, pid := range children {
		awaitState(pid, ended)
	}
}

// runProcess runs cmd to its end and returns what it wrote. The end of ctx kills it.
func runProcess(ctx context.Context, cmd *exec.Cmd) ([]byte, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	p, err := startProcess(cmd, syscall.SIGKILL)
	if err != nil {
		return nil, err
	}
	select {
	case <-p.done:
		return out.Bytes(), p.err
	case <-ctx.Done():
		p.kill()
		return out.Bytes(), context.Cause(ctx)
	}
}
