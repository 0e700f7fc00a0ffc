package main

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kdedup/kdedup/internal/testkit/skip"
)

const module = "github.com/kdedup/kdedup/"

// tally counts tests by the reason why they were skipped.
type tally map[string]*count

type count struct {
	tests    int
	packages map[string]bool
}

func (t tally) add(reason, pkg string) {
	if t[reason] == nil {
		t[reason] = &count{packages: make(map[string]bool)}
	}
	t[reason].tests++
	t[reason].packages[strings.TrimPrefix(pkg, module)] = true
}

func (t tally) tests() (n int) {
	for _, c := range t {
		n += c.tests
	}
	return n
}

// lines are the reasons with the packages in which they occur, the most frequent first.
func (t tally) lines() string {
	reasons := slices.SortedFunc(maps.Keys(t), func(a, b string) int {
		return cmp.Or(cmp.Compare(t[b].tests, t[a].tests), cmp.Compare(a, b))
	})
	var text strings.Builder
	for _, reason := range reasons {
		packages := slices.Sorted(maps.Keys(t[reason].packages))
		fmt.Fprintf(&text, "  %4d  %s (%s)\n", t[reason].tests, reason,
			strings.Join(packages, ", "))
	}
	return text.String()
}

// ofTheSubject are reasons that lie in what is tested, on whatever machine: they are no gap.
var ofTheSubject = []string{
	"there is no transaction",
	"the store has no way to report",
	"the store cannot be reopened",
	"the store is not durable",
	"set CHAOS_NODES=1",
	skip.LeftToProof,
}

// countSkips finds the reasons in the output of a test that has ended.
func (r *report) countSkips(e event, lines []string) {
	for _, line := range lines {
		if _, reason, found := strings.Cut(line, skip.NotTested); found {
			r.notTested.add(strings.TrimSpace(reason), e.Package)
			return
		}
	}
	if e.Action == "skip" {
		r.leftOut.add(reasonOf(lines), e.Package)
	}
}

var logPrefix = regexp.MustCompile(`^\s+\w+\.go:\d+: `)

// reasonOf is the last line that a skipped test has logged.
func reasonOf(lines []string) string {
	for _, line := range slices.Backward(lines) {
		if at := logPrefix.FindStringIndex(line); at != nil {
			return strings.TrimSpace(line[at[1]:])
		}
	}
	return "no reason given"
}

// skipped says whether a test did not run that could have.
func (r *report) skipped() bool {
	for reason := range r.leftOut {
		known := func(start string) bool { return strings.HasPrefix(reason, start) }
		if !slices.ContainsFunc(ofTheSubject, known) {
			return true
		}
	}
	return len(r.notTested) > 0
}

// summary is the last that a run prints.
func (r *report) summary(slowest int) {
	r.slowest(slowest)
	r.print(fmt.Sprintf("\n%d tests passed, %d failed, in %d packages and %v\n",
		r.passed, len(r.failed), r.packages, time.Since(r.begun).Round(time.Second)))
	for _, at := range r.failed {
		r.print(fmt.Sprintf("  FAILED  %s %s\n", strings.TrimPrefix(at.pkg, module), at.test))
	}
	for _, at := range r.unsteady {
		r.print(fmt.Sprintf(
			"  UNSTEADY  %s %s: it failed, as printed above, and then passed twice by itself\n",
			strings.TrimPrefix(at.pkg, module), at.test))
	}
	if n := r.leftOut.tests(); n > 0 {
		r.print(fmt.Sprintf("%d tests do not apply, or are left to a longer run:\n%s", n,
			r.leftOut.lines()))
	}
	if n := r.notTested.tests(); n > 0 {
		r.print(fmt.Sprintf("%d tests were SKIPPED, because something is missing here:\n%s", n,
			r.notTested.lines()) +
			"To install it, on Debian and its kin as root: make packages\n" +
			"Other ways: docs/testing.md, \"Where the servers come from\"\n")
	}
}

// slowest lists the tests that took longest. go test itself gives a test with parallel subtests no
// time.
func (r *report) slowest(n int) {
	maps.DeleteFunc(r.took, func(at place, _ time.Duration) bool {
		return strings.Contains(at.test, "/")
	})
	tests := slices.SortedFunc(maps.Keys(r.took), func(a, b place) int {
		return cmp.Compare(r.took[b], r.took[a])
	})
	tests = tests[:min(n, len(tests))]
	if len(tests) > 0 {
		r.print("\nthe slowest tests:\n")
	}
	for _, at := range tests {
		r.print(fmt.Sprintf("  %7.1fs  %s %s\n", r.took[at].Seconds(),
			strings.TrimPrefix(at.pkg, module), at.test))
	}
}
