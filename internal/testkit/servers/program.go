package servers

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// ProgramOptions describe a program that a test wants to handle as it handles servers: the one that
// it tests.
type ProgramOptions struct {
	Name    string // in error messages
	Dir     string // for the log
	Addr    string // what Server.Addr returns
	Command func() *exec.Cmd
	Probe   func(ctx context.Context) error // nil when the program does its work
}

// StartProgram starts the program and returns when it does its work. ctx bounds the start.
func StartProgram(ctx context.Context, opts ProgramOptions) (*Server, error) {
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", opts.Name, err)
	}
	s := &Server{
		name: opts.Name, addr: opts.Addr, log: filepath.Join(dir, "log"),
		command: opts.Command, probe: opts.Probe,
	}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// FreePorts returns n different ports that are free on host, from a range that is not used for
// outgoing connections.
func FreePorts(host string, n int) ([]int, error) { return freePorts(host, n) }
