package pipeline

import (
	"fmt"
	"hash/fnv"
	"strings"
)

const traceLength = 60

// modelTrace remembers the last events of a run that is replayed. Other runs write nothing down.
type modelTrace struct {
	on    bool
	lines []string
	hash  uint64
}

// trace writes down what a process did, or the world (-1).
func (w *modelWorld) trace(slot int, format string, args ...any) {
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

func (t *modelTrace) tail() string {
	return strings.Join(t.lines[max(0, len(t.lines)-traceLength):], "\n")
}
