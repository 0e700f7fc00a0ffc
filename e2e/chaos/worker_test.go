package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/kdedup/kdedup/internal/pause"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// worker is one kdedup process and, like an operating system's supervisor, starts it again when it
// could not reach its servers. A process that worked and then ends by itself fails the test.
type worker struct {
	t       *testing.T
	name    string
	options servers.ProgramOptions

	mu      sync.Mutex
	server  *servers.Server    // the last that was started
	release context.CancelFunc // ends the keeper; nil while the process shall be down
	keeper  sync.WaitGroup
	starts  int // that worked
	refused int // that did not
}

func newWorker(t *testing.T, dir, config, name string) *worker {
	t.Helper()
	ports, err := servers.FreePorts("127.0.0.1", 1)
	if err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", ports[0])
	w := &worker{t: t, name: name}
	w.options = servers.ProgramOptions{
		Name: name, Dir: filepath.Join(dir, name), Addr: addr,
		Command: func() *exec.Cmd {
			cmd := exec.Command(kdedup, "run", "-c", config, "--instance", name)
			cmd.Env = append(testkit.Environment(), "KDEDUP_SERVER_LISTEN="+addr)
			return cmd
		},
		Probe: func(ctx context.Context) error { return get(ctx, "http://"+addr+"/healthz") },
	}
	t.Cleanup(func() { w.end((*servers.Server).Kill) })
	return w
}

// httpClient makes a connection for each request: a process that is gone leaves none behind.
var httpClient = http.Client{Transport: &http.Transport{DisableKeepAlives: true},
	Timeout: 10 * time.Second}

func get(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := httpClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}

// up has the process started, now and whenever its start is refused, until it shall be down.
func (w *worker) up() {
	wanted, release := context.WithCancel(context.Background())
	w.mu.Lock()
	w.release = release
	w.mu.Unlock()
	w.keeper.Go(func() { w.keep(wanted) })
}

// keep watches the process for as long as it is wanted.
func (w *worker) keep(wanted context.Context) {
	for {
		server, err := w.launch(wanted)
		if err != nil {
			return
		}
		select {
		case <-wanted.Done():
			return
		case <-server.Ended():
			w.t.Errorf("%s ended by itself\n%s", w.name, server.Log())
		}
	}
}

const relaunchPause = 500 * time.Millisecond

// launch tries as long as the process is wanted.
func (w *worker) launch(wanted context.Context) (*servers.Server, error) {
	for {
		server, err := servers.StartProgram(wanted, w.options)
		w.mu.Lock()
		if err == nil {
			w.server = server
			w.starts++
		} else {
			w.refused++
		}
		w.mu.Unlock()
		if err == nil || !pause.For(wanted, relaunchPause) {
			return server, err
		}
	}
}

// end takes the process down; how must return when it is gone. It does nothing if it is down.
func (w *worker) end(how func(*servers.Server)) {
	w.mu.Lock()
	release := w.release
	w.release = nil
	w.mu.Unlock()
	if release == nil {
		return
	}
	release()
	w.keeper.Wait()
	if server := w.current(); server != nil {
		how(server)
	}
}

// current is the last process that served; nil if none did.
func (w *worker) current() *servers.Server {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.server
}

// serves reports whether the process runs and has reached its servers once.
func (w *worker) serves() bool {
	server := w.current()
	if server == nil {
		return false
	}
	select {
	case <-server.Ended():
		return false
	default:
		return true
	}
}

// waitServing returns when the process serves, or patience or ctx ends.
func (w *worker) waitServing(ctx context.Context, patience time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for !w.serves() {
		if !pause.For(ctx, askEvery) {
			return false
		}
	}
	return true
}

func (w *worker) kill() { w.end((*servers.Server).Kill) }

// stop is SIGTERM; a process that does not end is an error.
func (w *worker) stop() {
	w.end(func(s *servers.Server) {
		if err := s.Stop(); err != nil {
			w.t.Error(err)
		}
	})
}

func (w *worker) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return get(ctx, "http://"+w.options.Addr+"/readyz")
}
