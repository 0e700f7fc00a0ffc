package servers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	startLimit = 3 * time.Minute // for one start; a slow machine under load needs most of it
	stopGrace  = time.Minute     // between the signal to end and SIGKILL
	probeEvery = 100 * time.Millisecond
	probeLimit = 3 * time.Second // for one try
)

// Server is a real server in a process of its own. Its methods may be called at any time by any
// goroutine; each runs to its end before the next begins.
type Server struct {
	name    string
	addr    string
	log     string // file
	command func() *exec.Cmd
	probe   func(ctx context.Context) error // nil when the server answers its protocol
	routes  []Route
	stop    syscall.Signal // asks it to end; 0 is SIGTERM

	listeners map[string]Route // a broker's, by name

	// of a broker that others may join
	dir, controller string

	mu   sync.Mutex
	proc *process
}

// Addr is where clients connect, "host:port". It stays the same over restarts.
func (s *Server) Addr() string { return s.addr }

// Route is what one proxy in front of a server needs to know.
type Route struct {
	Listen   string // where clients are told to connect: the proxy listens there
	Upstream string // where the server waits for what the proxy passes on
}

// Routes returns one route for each proxy that the options asked for. The starter runs the proxies.
func (s *Server) Routes() []Route { return s.routes }

// Listener returns where clients of a broker's listener connect. With a proxy, that is Listen, and
// the proxy connects to Upstream; without, both are the same.
func (s *Server) Listener(name string) Route { return s.listeners[name] }

// PID returns the process that runs now. A program that starts others, as PostgreSQL does, is the
// parent of what does the work.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc.cmd.Process.Pid
}

// Ended returns a channel that is closed when the process that runs now has ended, however it ends.
// The next Restart makes another one.
func (s *Server) Ended() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc.done
}

// Stop ends the server gracefully and returns when it is gone. Stopping a stopped server does
// nothing. An error means that the server did not end by itself and was killed.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopLocked()
}

func (s *Server) stopLocked() error {
	if err := s.proc.terminate(stopGrace); err != nil {
		return fmt.Errorf("stop %s: %w\n%s", s.name, err, s.Log())
	}
	return nil
}

// Kill ends the server at once, as a crash of its process does, and returns when it is gone. What
// it wrote to its files stays written; what it kept in memory is lost.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proc.kill()
}

// Pause stops the server's threads; its connections stay open and silent.
func (s *Server) Pause() error { return s.signal("pause", syscall.SIGSTOP) }

// Resume lets a paused server go on.
func (s *Server) Resume() error { return s.signal("resume", syscall.SIGCONT) }

func (s *Server) signal(what string, sig syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.proc.signalAll(sig); err != nil {
		return fmt.Errorf("%s %s: %w", what, s.name, err)
	}
	return nil
}

// Restart stops the server, unless it is down already, starts it with the same address and data,
// and returns when it answers. ctx bounds the start only.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.stopLocked(); err != nil {
		return err
	}
	return s.startLocked(ctx)
}

// start is for a new server, whose methods nobody calls yet.
func (s *Server) start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.startLocked(ctx)
}

func (s *Server) startLocked(ctx context.Context) error {
	proc, err := s.launch()
	if err != nil {
		return fmt.Errorf("start %s: %w", s.name, err)
	}
	s.proc = proc
	if err := waitFor(ctx, proc, s.probe); err != nil {
		proc.kill()
		return fmt.Errorf("start %s: %w\n%s", s.name, err, s.Log())
	}
	return nil
}

func (s *Server) launch() (*process, error) {
	if err := os.MkdirAll(filepath.Dir(s.log), 0o755); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own descriptor
	cmd := s.command()
	cmd.Stdout, cmd.Stderr = log, log
	proc, err := startProcess(cmd, syscall.SIGKILL)
	if err == nil && s.stop != 0 {
		proc.stop = s.stop
	}
	return proc, err
}

// waitFor returns nil as soon as probe does, and an error when the time or the process ends first.
func waitFor(ctx context.Context, proc *process, probe func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit,
		fmt.Errorf("no answer within %v", startLimit))
	defer cancel()
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		err := probeOnce(ctx, probe)
		if err == nil {
			return nil
		}
		select {
		case <-proc.done:
			return fmt.Errorf("it ended by itself: %v", proc.err)
		case <-ctx.Done():
			return fmt.Errorf("%w (last answer: %v)", context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

func probeOnce(ctx context.Context, probe func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	return probe(ctx)
}

// waitFor is for a server that runs already.
func (s *Server) waitFor(ctx context.Context, probe func(context.Context) error) error {
	s.mu.Lock()
	proc := s.proc
	s.mu.Unlock()
	return waitFor(ctx, proc, probe)
}

// Log returns the end of the server's log, for error messages.
func (s *Server) Log() string { return logTail(s.log) }
