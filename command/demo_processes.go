package command

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// demoProcess is a `kdedup run` of the demo, in a process of its own. What it logs is in a file.
type demoProcess struct {
	name, address string
	file, logged  string
	cmd           *exec.Cmd
	ended         chan struct{} // closed when the process has ended
}

// demoGroup is all of them.
type demoGroup []*demoProcess

// startAll starts processes. Those that it returns beside an error run, too.
func startAll(file string, n int) (all demoGroup, err error) {
	for i := range n {
		p := &demoProcess{name: fmt.Sprint("demo-", i+1), file: file,
			logged: filepath.Join(filepath.Dir(file), fmt.Sprintf("demo-%d.log", i+1))}
		if p.address, err = unusedAddress(); err != nil {
			return all, err
		}
		if err := p.start(); err != nil {
			return all, err
		}
		all = append(all, p)
	}
	return all, nil
}

// unusedAddress is one at which nobody listens now.
func unusedAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port for a status page: %w", err)
	}
	return l.Addr().String(), l.Close()
}

// start starts this program once more. Settings in the environment are not meant for the demo.
func (p *demoProcess) start() error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program, to start it as %s: %w", p.name, err)
	}
	log, err := os.OpenFile(p.logged, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the process has it
	p.cmd = exec.Command(program, "run", "-c", p.file, "--instance", p.name)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.Env = append(slices.DeleteFunc(os.Environ(), func(setting string) bool {
		return strings.HasPrefix(setting, "KDEDUP_")
	}), "KDEDUP_SERVER_LISTEN="+p.address)
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	cmd, ended := p.cmd, make(chan struct{})
	p.ended = ended
	go func() {
		defer close(ended)
		_ = cmd.Wait() // why it ended is in its log
	}()
	return nil
}

// kill ends the process as a crash does, and returns when it is gone.
func (p *demoProcess) kill() error {
	if err := p.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("kill %s: %w", p.name, err)
	}
	<-p.ended
	return nil
}

// check is an error if a process has ended by itself.
func (g demoGroup) check() error {
	for _, p := range g {
		select {
		case <-p.ended:
			log, err := os.ReadFile(p.logged)
			return errors.Join(fmt.Errorf("%s has ended:\n%s", p.name, log), err)
		default:
		}
	}
	return nil
}

// demoPatience is for how long a process may take to end by itself.
const demoPatience = 10 * time.Second

// end stops all that run, and returns when they have ended.
func (g demoGroup) end() {
	for _, p := range g {
		// An error: it has ended, or the system knows no signals.
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			_ = p.cmd.Process.Kill()
		}
	}
	patience := time.After(demoPatience)
	for _, p := range g {
		select {
		case <-p.ended:
		case <-patience:
			_ = p.kill()
		}
	}
}
