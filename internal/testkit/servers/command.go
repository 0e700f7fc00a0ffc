package servers

import (
	"os"
	"os/exec"
	"syscall"
)

// RunCommand runs cmd to its end and hands the signals that arrive meanwhile to it and its
// children, which form a process group of their own: a Ctrl-C in the terminal comes to them from
// here alone, and they cannot read from the terminal. If this process dies or is orphaned, they get
// SIGTERM. The error is that of cmd.Run.
func RunCommand(cmd *exec.Cmd, signals <-chan os.Signal) error {
	p, err := startProcess(cmd, syscall.SIGTERM)
	if err != nil {
		return err
	}
	for {
		select {
		case <-p.done:
			return p.err
		case s := <-signals:
			if sig, ok := s.(syscall.Signal); ok {
				_ = p.signal(sig) // it may just have ended
			}
		}
	}
}
