package e2e_test

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kdedup/kdedup/internal/testkit"
)

// logged is a process whose log goes into a pipe of the test's.
type logged struct {
	*deployment
	cmd    *exec.Cmd
	reader *os.File
	exited chan error
}

// startLogged returns when the process has connected. Nobody reads the pipe, which is full.
func startLogged(t *testing.T, delivery, format string) *logged {
	t.Helper()
	l := &logged{deployment: deployAt(t, inProcess(t), delivery), exited: make(chan error, 1)}
	l.addSettings("log: {level: debug, format: " + format + "}")
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reader.Close() })
	l.reader = reader
	fillPipe(t, writer)
	l.cmd = exec.Command(kdedup, "run", "-c", l.config, "--instance", "one")
	l.cmd.Env, l.cmd.Stderr = testkit.Environment(), writer
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = writer.Close()
	go func() { l.exited <- l.cmd.Wait() }()
	t.Cleanup(func() { _ = l.cmd.Process.Kill() })
	return l
}

// fillPipe leaves no room in a pipe.
func fillPipe(t *testing.T, writer *os.File) {
	t.Helper()
	if err := writer.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	line := []byte(strings.Repeat("x", 127) + "\n")
	for {
		if _, err := writer.Write(line); err != nil {
			return
		}
	}
}

// clean has everything forwarded that was produced.
func (l *logged) clean() {
	l.t.Helper()
	l.produce(5000, 16)
	l.waitFor(1)
	if v := l.check(); v.lost > 0 || v.doubled > 0 {
		l.t.Errorf("%d lost, %d doubled", v.lost, v.doubled)
	}
}

// terminate wants a good end, and soon.
func (l *logged) terminate() {
	l.t.Helper()
	if err := l.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		l.t.Fatal(err)
	}
	select {
	case err := <-l.exited:
		if err != nil {
			l.t.Errorf("ended by %v", err)
		}
	case <-time.After(time.Minute):
		l.t.Fatal("SIGTERM does not end the process")
	}
}

func TestALogThatNobodyReadsHoldsUpNeitherRecordsNorTheStop(t *testing.T) {
	t.Parallel()
	for _, delivery := range []string{exactlyOnce, atLeastOnce} {
		t.Run(delivery, func(t *testing.T) {
			l := startLogged(t, delivery, "text")
			l.clean()
			l.terminate()
		})
	}
}

// Whoever reads the log again finds its last lines.
func TestTheLastLinesOfALogWaitForItsReader(t *testing.T) {
	t.Parallel()
	l := startLogged(t, exactlyOnce, "json")
	l.clean()
	read := make(chan string)
	go func() {
		text, _ := io.ReadAll(l.reader)
		read <- string(text)
	}()
	l.terminate()
	lines := strings.Split(strings.TrimSpace(<-read), "\n")
	if last := lines[len(lines)-1]; !strings.Contains(last, `"msg":"stopped"`) {
		t.Errorf("the last line is %s", last)
	}
}

func TestALogWhoseReaderIsGoneEndsNothing(t *testing.T) {
	t.Parallel()
	l := startLogged(t, exactlyOnce, "text")
	_ = l.reader.Close()
	l.clean()
	l.terminate()
}

// The last words of a start that fails wait for their reader, but not for ever.
func TestAStartThatFailsEndsThoughNobodyReadsItsLog(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	fillPipe(t, writer)
	cmd := exec.CommandContext(t.Context(), kdedup, "run", "-c", "none.yaml")
	cmd.Env, cmd.Stderr = testkit.Environment(), writer
	_ = cmd.Run()
	_ = writer.Close()
	if code := cmd.ProcessState.ExitCode(); code != 2 {
		t.Errorf("exit code %d, want 2", code)
	}
}

// A command whose output has lost its reader ends in order, and says so.
func TestACommandWithoutAReaderEndsInOrder(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = reader.Close()
	var says testkit.Printed
	cmd := exec.CommandContext(t.Context(), kdedup, "config", "schema")
	cmd.Env, cmd.Stdout, cmd.Stderr = testkit.Environment(), writer, &says
	_ = cmd.Run()
	_ = writer.Close()
	if code := cmd.ProcessState.ExitCode(); code != 1 ||
		says.String() != "kdedup: nobody reads the output any more\n" {
		t.Errorf("%v, says %q", cmd.ProcessState, says.String())
	}
}
