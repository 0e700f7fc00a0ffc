package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/process"
)

// checklist prints what was checked as it goes, and keeps what is wrong.
type checklist struct {
	out      io.Writer
	problems []error
}

// check prints a line, and below it what is wrong, and reports whether all is well.
func (l *checklist) check(what string, err error) bool {
	mark := "✓"
	if err != nil {
		mark = "✗"
		l.problems = append(l.problems, err)
	}
	fmt.Fprintln(l.out, mark, what)
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			fmt.Fprintln(l.out, "  ", strings.TrimRight(line, "\n"))
		}
	}
	return err == nil
}

// skip prints a line about what cannot be checked now.
func (l *checklist) skip(what string, why any) { fmt.Fprintf(l.out, "- %s: %v\n", what, why) }

// err joins what is wrong.
func (l *checklist) err() error { return errors.Join(l.problems...) }

// checkWritable finds out whether run could make its embedded store, or the index of its claim log,
// or write to it. It leaves nothing behind.
func checkWritable(c config.Store) error {
	setting, path := "store.embedded.path", c.Embedded.Path
	if index, name := c.IndexPath(); index != nil {
		setting, path = name, *index
	} else if c.Type != config.StoreEmbedded {
		return nil
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("%s: %w", setting, err)
	}
	for {
		info, err := os.Stat(path)
		if err == nil && !info.IsDir() {
			return fmt.Errorf("%s: %s is no directory", setting, path)
		}
		if err == nil {
			break
		}
		if !errors.Is(err, os.ErrNotExist) || filepath.Dir(path) == path {
			return fmt.Errorf("%s: %w", setting, err)
		}
		path = filepath.Dir(path) // run makes what is missing below
	}
	probe, err := os.CreateTemp(path, ".kdedup-validate-")
	if err != nil {
		return fmt.Errorf("%s: %s cannot be written: %w", setting, path, err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// checkListen finds out whether run could listen. A process of kdedup that has the address is no
// problem: most likely it is the one that runs with this file.
func (l *checklist) checkListen(ctx context.Context, c config.Server) {
	const what = "the address of server.listen is free"
	listener, err := net.Listen("tcp", c.Listen)
	switch {
	case err == nil:
		l.check(what, listener.Close())
	case errors.Is(err, syscall.EADDRINUSE) && isOurs(ctx, c):
		l.skip("the address of server.listen", "taken by a process of kdedup, which runs; "+
			"a second one on this machine needs another address and another --instance")
	default:
		l.check(what, fmt.Errorf("server.listen: %w", err))
	}
}

// isOurs reports whether kdedup answers at the address. Probes need no password.
func isOurs(ctx context.Context, c config.Server) bool {
	client, server, err := clientOf(c)
	if err != nil {
		return false
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/healthz",
		http.NoBody)
	if err != nil {
		return false
	}
	answer, err := client.Do(request)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	return answer.Header.Get("Server") == process.ServerName
}
