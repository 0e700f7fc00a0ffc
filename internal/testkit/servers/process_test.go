package servers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestTerminateContinuesAPausedProcess(t *testing.T) {
	p, _ := startShell(t, "echo ready; sleep 1000")
	if err := p.signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := p.terminate(10 * time.Second); err != nil {
		t.Fatal(err)
	}
}

func TestTerminateKillsAfterTheGrace(t *testing.T) {
	p, _ := startShell(t, "trap '' TERM; echo ready; while :; do sleep 0.1; done")
	if err := p.terminate(200 * time.Millisecond); err == nil {
		t.Fatal("no error for a process that ignores SIGTERM")
	}
	if p.running() {
		t.Fatal("it still runs")
	}
}

func TestKillReachesAndAwaitsTheProcessesOfTheProcess(t *testing.T) {
	for name, command := range map[string]string{"in its group": "sleep 1000",
		"in a session of their own": "setsid sleep 1000"} {
		t.Run(name, func(t *testing.T) {
			linux := runtime.GOOS == "linux" // which tells the children of a process
			if !linux && strings.HasPrefix(command, "setsid") {
				t.Skip("only Linux ends processes outside of the group")
			}
			p, line := startShell(t, command+" & echo $!; wait")
			grandchild, err := strconv.Atoi(line)
			if err != nil {
				t.Fatal(err)
			}
			p.kill()
			if linux && !gone(grandchild) {
				t.Errorf("process %d still runs", grandchild)
			}
			waitGone(t, grandchild)
		})
	}
}

func TestSignalAfterTheEndIsAnError(t *testing.T) {
	p, _ := startShell(t, "echo ready")
	<-p.done
	if err := p.signal(syscall.SIGSTOP); !errors.Is(err, errNotRunning) {
		t.Fatalf("got %v, want %v", err, errNotRunning)
	}
	if err := p.terminate(time.Second); err != nil {
		t.Fatalf("terminate after the end: %v", err)
	}
	p.kill()
}

func TestRunProcessEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := runProcess(ctx, exec.Command("sleep", "1000")); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want %v", err, context.Canceled)
	}
}

func TestChildDiesWithItsKilledStarter(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends the children of a killed process")
	}
	starter := exec.Command(linkTestBinary(t, starterName))
	child := startAndReadPid(t, starter, starter.Start)
	_ = starter.Process.Kill()
	_ = starter.Wait()
	waitGone(t, child)
}

// A killed `go test` leaves its test binary behind, which then must end its servers itself.
func TestChildDiesWhenItsStarterIsOrphaned(t *testing.T) {
	shell := exec.Command("sh", "-c", `"$0" & wait`, linkTestBinary(t, starterName))
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	child := startAndReadPid(t, shell, shell.Start)
	t.Cleanup(func() { _ = syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) }) // with the starter
	_ = shell.Process.Kill()
	_ = shell.Wait()
	waitGone(t, child)
}

// playStarter starts a child, prints its pid and waits for its end.
func playStarter() error {
	p, err := startProcess(exec.Command("sleep", "1000"), syscall.SIGKILL)
	if err != nil {
		return err
	}
	fmt.Println(p.cmd.Process.Pid)
	<-p.done
	return nil
}

// startShell returns when the script has written its first line, with that line.
func startShell(t *testing.T, script string) (*process, string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	var p *process
	line := readLine(t, cmd, func() (err error) {
		p, err = startProcess(cmd, syscall.SIGKILL)
		return err
	})
	t.Cleanup(p.kill)
	return p, line
}

func startAndReadPid(t *testing.T, cmd *exec.Cmd, start func() error) int {
	t.Helper()
	pid, err := strconv.Atoi(readLine(t, cmd, start))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// readLine starts cmd and returns the first line that it writes.
func readLine(t *testing.T, cmd *exec.Cmd, start func() error) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd.Stdout = w
	err = start()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// waitGone returns when the process has ended, although nobody may have reaped it yet.
func waitGone(t *testing.T, pid int) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); !gone(pid); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("process %d still runs", pid)
		}
	}
}

func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}
