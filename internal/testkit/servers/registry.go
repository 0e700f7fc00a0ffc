package servers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
)

// RegistryOptions describe a schema registry. Only Dir is required.
type RegistryOptions struct {
	Dir  string // for the log; the registry keeps its schemas in memory
	Port int    // on 127.0.0.1; 0 takes a free one
}

// RegistryURL is where a registry of StartRegistry speaks Confluent's API.
func RegistryURL(s *Server) string { return "http://" + s.Addr() + "/apis/ccompat/v7" }

// StartRegistry starts an Apicurio Registry and returns when it answers. ctx bounds the start, with
// the first download of what it needs, and nothing after it.
func StartRegistry(ctx context.Context, opts RegistryOptions) (*Server, error) {
	s, err := newRegistry(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("start schema registry: %w", err)
	}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

func newRegistry(ctx context.Context, opts RegistryOptions) (*Server, error) {
	if opts.Dir == "" {
		return nil, errors.New("no Dir in the options")
	}
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return nil, err
	}
	python, lib, err := registryParts(ctx)
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(loopback, 2)
	if err != nil {
		return nil, err
	}
	port := cmp.Or(opts.Port, ports[0])
	s := &Server{
		name: "schema registry on " + address(loopback, port),
		addr: address(loopback, port),
		log:  filepath.Join(dir, "log"),
	}
	s.command = func() *exec.Cmd {
		flags := append([]string{"-Xmx256m"}, QuickStart...)
		cmd := exec.Command(python.java(), append(flags,
			"-Dquarkus.http.host="+loopback, fmt.Sprint("-Dquarkus.http.port=", port),
			"-Dquarkus.management.host="+loopback,
			fmt.Sprint("-Dquarkus.management.port=", ports[1]),
			"-jar", filepath.Join(lib, "quarkus-run.jar"))...)
		cmd.Dir = dir
		return cmd
	}
	s.probe = func(ctx context.Context) error { return probeHTTP(ctx, RegistryURL(s)+"/subjects") }
	return s, nil
}

// registryParts are the programs of a registry. Its Java comes from Python, because it needs a
// newer one than the other servers.
func registryParts(ctx context.Context) (python *Python, lib string, err error) {
	if python, err = FindPython(ctx); err != nil {
		return nil, "", err
	}
	lib, err = jars(ctx, "registry", registryVersion)
	return python, lib, err
}

// FindRegistry returns nil if StartRegistry works here. It downloads what is not there yet.
func FindRegistry(ctx context.Context) error {
	_, _, err := registryParts(ctx)
	return err
}

func probeHTTP(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", url, answer.Status)
	}
	return nil
}
