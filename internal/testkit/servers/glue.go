package servers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
)

// GlueOptions describe what answers as the AWS Glue schema registry. Only Dir is required.
type GlueOptions struct {
	Dir  string // for the log; the schemas are in memory
	Port int    // on 127.0.0.1; 0 takes a free one
}

// StartGlue starts a moto and returns when it answers. Its registry is at http://Addr, for any
// credentials.
func StartGlue(ctx context.Context, python *Python, opts GlueOptions) (*Server, error) {
	if opts.Dir == "" {
		return nil, errors.New("start moto: no Dir in the options")
	}
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return nil, fmt.Errorf("start moto: %w", err)
	}
	ports, err := freePorts(loopback, 1)
	if err != nil {
		return nil, fmt.Errorf("start moto: %w", err)
	}
	port := cmp.Or(opts.Port, ports[0])
	at := address(loopback, port)
	return StartProgram(ctx, ProgramOptions{
		Name: "moto on " + at, Dir: dir, Addr: at,
		Command: func() *exec.Cmd {
			cmd := python.command("-m", "moto.server", "-H", loopback, "-p", fmt.Sprint(port))
			cmd.Dir = dir
			return cmd
		},
		Probe: func(ctx context.Context) error {
			return probeHTTP(ctx, "http://"+at+"/moto-api/data.json")
		},
	})
}
