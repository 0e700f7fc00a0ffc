package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"time"
)

// profiler keeps a CPU profile of every run of kdedup, for the compiler (https://go.dev/doc/pgo). A
// nil one keeps none.
type profiler struct {
	address string        // of kdedup's server; one process runs at a time
	during  time.Duration // of each run, from when the process has partitions
	files   []string
}

func newProfiler() (*profiler, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &profiler{address: l.Addr().String(), during: 10 * time.Second}, l.Close()
}

// server is kdedup's setting.
func (p *profiler) server() string {
	if p == nil {
		return `{listen: "127.0.0.1:0"}`
	}
	return fmt.Sprintf("{listen: %q, pprof: true}", p.address)
}

// begin profiles a run into a file; wait returns when it is there. A run that is over earlier adds
// nothing to it.
func (p *profiler) begin(ctx context.Context, c contestant, file string) (wait func() error) {
	if p == nil || !c.exact {
		return func() error { return nil }
	}
	done := make(chan error, 1)
	go func() { done <- fetchProfile(ctx, p.address, file, p.during) }()
	return func() error {
		if err := <-done; err != nil {
			return fmt.Errorf("profile %s: %w", c.name, err)
		}
		p.files = append(p.files, file)
		return nil
	}
}

func fetchProfile(ctx context.Context, address, to string, during time.Duration) (err error) {
	url := fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%.0f", address, during.Seconds())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	file, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = io.Copy(file, response.Body)
	return err
}

// merge writes all profiles into one.
func (p *profiler) merge(ctx context.Context, to string) error {
	if p == nil {
		return nil
	}
	if len(p.files) == 0 {
		return errors.New("-profile: no run of kdedup was profiled")
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"tool", "pprof", "-proto", "-output", to},
		p.files...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("merge profiles: %w\n%s", err, out)
	}
	return nil
}
