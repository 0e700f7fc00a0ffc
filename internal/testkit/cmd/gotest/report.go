package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// event is a line of `go test -json`, see `go doc test2json`.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Time    time.Time
}

func (e event) place() place { return place{e.Package, e.Test} }

// place is a test, or a package when the test has no name.
type place struct{ pkg, test string }

// report prints the output of `go test` while it runs, and keeps what the summary needs.
type report struct {
	out     io.Writer
	verbose bool
	begun   time.Time

	output           map[place][]string // of what has not ended yet
	passed, packages int
	failed, unsteady []place
	defect           bool                    // something failed that no second try excuses
	took             map[place]time.Duration // of tests, with their subtests and without pauses
	since            map[place]time.Time     // of tests that run
	notTested        tally                   // lacks something of the machine
	leftOut          tally                   // skipped for another reason
}

func newReport(out io.Writer, verbose bool) *report {
	return &report{
		out: out, verbose: verbose, begun: time.Now(),
		output: make(map[place][]string), took: make(map[place]time.Duration),
		since:     make(map[place]time.Time),
		notTested: make(tally), leftOut: make(tally),
	}
}

// line takes one line of `go test -json`. What is no event is printed as it is.
func (r *report) line(text []byte) {
	var e event
	if json.Unmarshal(text, &e) != nil || e.Action == "" {
		r.print(string(text) + "\n")
		return
	}
	switch e.Action {
	case "run", "cont":
		r.since[e.place()] = e.Time
	case "pause":
		r.took[e.place()] += e.Time.Sub(r.since[e.place()])
	case "output":
		r.hear(e)
	case "build-output":
		r.print(e.Output)
	case "pass", "fail", "skip":
		r.end(e)
	}
}

func (r *report) print(text string) { fmt.Fprint(r.out, text) }

// hear keeps a line of output until it is known whether somebody wants to read it.
func (r *report) hear(e event) {
	if r.verbose {
		r.print(e.Output)
	}
	if strings.HasPrefix(e.Output, "=== ") { // RUN, PAUSE, CONT
		return
	}
	r.output[e.place()] = append(r.output[e.place()], e.Output)
}

// end is the end of a test or, without a name, of a package.
func (r *report) end(e event) {
	if e.Test == "" {
		r.endPackage(e)
		return
	}
	lines := r.output[e.place()]
	delete(r.output, e.place())
	r.countSkips(e, lines)
	switch e.Action {
	case "pass":
		r.passed++
	case "fail":
		r.failed = append(r.failed, e.place())
		r.defect = r.defect || slices.ContainsFunc(lines, isDefect)
		r.show(lines)
	}
	r.took[e.place()] += e.Time.Sub(r.since[e.place()])
}

// endPackage prints of a package that passed its last line only, as `go test` does, and of one that
// failed everything, with what the tests had said that never came to an end.
func (r *report) endPackage(e event) {
	r.packages++
	lines := r.output[e.place()]
	delete(r.output, e.place())
	if e.Action != "fail" {
		if len(lines) > 0 {
			r.show(lines[len(lines)-1:])
		}
		return
	}
	r.defect = r.defect || slices.ContainsFunc(lines, isDefect)
	before := len(r.failed)
	for at, unfinished := range r.output {
		if at.pkg == e.Package {
			r.failed = append(r.failed, at)
			r.show(unfinished)
			delete(r.output, at)
			r.defect = true
		}
	}
	if before == len(r.failed) && !r.anyFailed(e.Package) {
		r.failed = append(r.failed, e.place())
		r.defect = true
	}
	r.show(lines)
}

// isDefect is true of the first line of what Go itself says of a program. A test's own lines are
// indented.
func isDefect(line string) bool {
	said := func(start string) bool { return strings.HasPrefix(line, start) }
	return slices.ContainsFunc([]string{"WARNING: DATA RACE", "panic: ", "fatal error: "}, said)
}

func (r *report) anyFailed(pkg string) bool {
	for _, at := range r.failed {
		if at.pkg == pkg {
			return true
		}
	}
	return false
}

// show prints lines that were kept; with verbose they were printed when they came.
func (r *report) show(lines []string) {
	if !r.verbose {
		r.print(strings.Join(lines, ""))
	}
}
