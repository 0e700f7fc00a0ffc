//go:build !race

package simulation

import (
	"fmt"
	"hash/fnv"
	"strings"
)

const traceLength = 400

// tracer remembers the last events of a run that is replayed. Other runs write nothing down.
type tracer struct {
	on     bool
	calls  bool     // as well
	logged []string // by the product, which goroutines of its own may do in any order
	lines  []string
	hash   uint64
}

// trace writes down what a process did, or the world (-1).
func (w *world) trace(slot int, format string, args ...any) {
	if !w.on {
		return
	}
	who := "world "
	if slot >= 0 {
		who = fmt.Sprintf("lane %d", slot)
	}
	line := fmt.Sprintf("%6d %s  %s", w.step, who, fmt.Sprintf(format, args...))
	h := fnv.New64a()
	fmt.Fprint(h, w.hash, line)
	w.hash = h.Sum64()
	w.lines = append(w.lines, line)
	if len(w.lines) > 4*traceLength {
		w.lines = append(w.lines[:0], w.lines[len(w.lines)-traceLength:]...)
	}
}

func (t *tracer) tail() string {
	return strings.Join(t.lines[max(0, len(t.lines)-traceLength):], "\n") + "\nlogged:\n" +
		strings.Join(t.logged[max(0, len(t.logged)-traceLength/4):], "")
}
