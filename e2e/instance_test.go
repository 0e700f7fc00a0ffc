package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/kdedup/kdedup/internal/testkit"
)

// instance is one running kdedup process.
type instance struct {
	t      *testing.T
	name   string
	cmd    *exec.Cmd
	exited chan struct{}
	err    error // of the process; read it after exited

	reading sync.Mutex // held while nobody reads the log
	deaf    bool

	mu   sync.Mutex
	addr string // of the HTTP server
	last string // line of the log
	log  strings.Builder
}

// start runs a process; the test ends it at the latest.
func (d *deployment) start(name string) *instance {
	d.t.Helper()
	return d.launch(kdedup, name)
}

// launch is start with another binary and more variables in its environment.
func (d *deployment) launch(binary, name string, variables ...string) *instance {
	d.t.Helper()
	return d.launchAs("run", binary, name, variables...)
}

// launchAs has the binary run or serve.
func (d *deployment) launchAs(command, binary, name string, variables ...string) *instance {
	d.t.Helper()
	i := &instance{t: d.t, name: name, exited: make(chan struct{})}
	i.cmd = exec.Command(binary, command, "-c", d.config, "--instance", name)
	i.cmd.Env = slices.Concat(testkit.Environment(), d.env, variables)
	logs, err := i.cmd.StderrPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := i.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	go func() {
		defer close(i.exited)
		i.follow(logs)
		i.err = i.cmd.Wait()
	}()
	d.t.Cleanup(i.clear)
	testkit.Eventually(d.t, time.Minute, "the address of "+name, func() bool {
		return i.address() != "" || i.over()
	})
	return i
}

// answering are the lines that tell the address, of this version and of the one before keepers.
var answering = []string{`msg="the status page answers" address=`, `msg="serving metrics" address=`}

// follow reads the log to its end; it passes on what a failed test should show.
func (i *instance) follow(logs io.Reader) {
	lines := bufio.NewScanner(logs)
	for lines.Scan() {
		i.reading.Lock()
		line := lines.Text()
		i.reading.Unlock()
		i.mu.Lock()
		if strings.HasPrefix(line, "killed at ") || !strings.HasPrefix(i.last, "killed at ") {
			i.last = line // lines of the log may come after the word of a crash point
		}
		i.log.WriteString(line + "\n")
		for _, message := range answering {
			if _, addr, ok := strings.Cut(line, message); ok {
				i.addr, _, _ = strings.Cut(addr, " ")
			}
		}
		i.mu.Unlock()
		_, _ = io.WriteString(i.t.Output(), i.name+": "+line+"\n")
	}
}

// deafen has nobody read the log until hear: the pipe is full soon.
func (i *instance) deafen() {
	i.reading.Lock()
	i.deaf = true
}

func (i *instance) hear() {
	if i.deaf {
		i.deaf = false
		i.reading.Unlock()
	}
}

func (i *instance) address() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.addr
}

// text is the log so far.
func (i *instance) text() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.log.String()
}

func (i *instance) over() bool {
	select {
	case <-i.exited:
		return true
	default:
		return false
	}
}

// ready reports whether /readyz answers 200.
func (i *instance) ready() bool {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get("http://" + i.address() + "/readyz")
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

func (i *instance) waitReady() {
	i.t.Helper()
	testkit.Eventually(i.t, time.Minute, i.name+" is ready", i.ready)
}

// outcomes returns kdedup_records_total by outcome.
func (i *instance) outcomes() map[string]int {
	i.t.Helper()
	counts := make(map[string]int)
	for _, metric := range i.scrape()["kdedup_records_total"].GetMetric() {
		for _, label := range metric.GetLabel() {
			if label.GetName() == "outcome" {
				counts[label.GetValue()] += int(metric.GetCounter().GetValue())
			}
		}
	}
	return counts
}

func (i *instance) scrape() map[string]*dto.MetricFamily {
	i.t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(i.get("/metrics", "")))
	if err != nil {
		i.t.Fatal(err)
	}
	return families
}

// get asks the process's server; accept may be empty.
func (i *instance) get(path, accept string) []byte {
	i.t.Helper()
	ctx := context.WithoutCancel(i.t.Context()) // also when the test cleans up
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+i.address()+path,
		http.NoBody)
	if err != nil {
		i.t.Fatal(err)
	}
	if accept != "" {
		request.Header.Set("Accept", accept)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		i.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		i.t.Fatal(err)
	}
	return text
}

// stop asks the process to end and expects exit code 0.
func (i *instance) stop() {
	i.t.Helper()
	i.terminate()
	i.hear()
	<-i.exited
	if i.err != nil {
		i.t.Errorf("%s: stopped with %v", i.name, i.err)
	}
}

// terminate asks the process to end.
func (i *instance) terminate() {
	i.t.Helper()
	if err := i.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		i.t.Fatal(err)
	}
}

// clear ends the process with its test. After a failure the log shows what each goroutine waited
// for.
func (i *instance) clear() {
	i.hear()
	if i.t.Failed() {
		_ = i.cmd.Process.Signal(syscall.SIGQUIT) // it may be over already
		<-i.exited
		return
	}
	i.kill()
}

// kill ends the process as kill -9 does.
func (i *instance) kill() {
	_ = i.cmd.Process.Kill() // it may be over already
	<-i.exited
}

func total(counts ...map[string]int) (sum int) {
	for _, c := range counts {
		for _, n := range c {
			sum += n
		}
	}
	return sum
}
