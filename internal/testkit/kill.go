package testkit

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// KillAfter starts the test binary again with a variable ("NAME=value") in its environment, which
// makes it a process that prints the numbers from 0 on, each when a piece of work is done. At the
// given number the process is killed, as by kill -9. Returned is the last number that it printed
// before it died.
func KillAfter(t testing.TB, variable string, number int) (last int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), variable)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	last = -1
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if last, err = strconv.Atoi(lines.Text()); err != nil {
			t.Fatal(err)
		}
		if last == number {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || last < number {
		t.Fatalf("the process ended after %d: %v", last, err)
	}
	return last
}
