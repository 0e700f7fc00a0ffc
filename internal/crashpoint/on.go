//go:build crashpoints

package crashpoint

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

const variable = "KDEDUP_CRASH_AT"

// wanted is the point at which the process ends; left counts down to it.
var (
	wanted string
	left   atomic.Int64
)

// init comes before the configuration is read, which knows no such setting: it takes the variable
// away.
func init() {
	text, armed := os.LookupEnv(variable)
	if !armed {
		return
	}
	name, number, counted := strings.Cut(text, "#")
	n, err := strconv.Atoi(number)
	if !counted {
		n, err = 1, nil
	}
	known := slices.Concat(Points(), stepsOfRedrive)
	if err != nil || n < 1 || !slices.Contains(known, name) {
		fmt.Fprintf(os.Stderr, "%s=%s: want NAME or NAME#N, with a name of %q\n", variable, text,
			known)
		os.Exit(2)
	}
	wanted = name
	left.Store(int64(n))
	_ = os.Unsetenv(variable) // fails only for names that no variable can have
}

// At ends the process if this is the time at which it shall come to the point. The line that it
// writes tells the test that it was this kill and no other.
func At(name string) {
	if name != wanted || left.Add(-1) != 0 {
		return
	}
	fmt.Fprintf(os.Stderr, "killed at %s\n", name)
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(fmt.Sprintf("kill at %s: %v", name, err))
	}
	select {} // the signal ends all threads, this one perhaps an instant later
}
