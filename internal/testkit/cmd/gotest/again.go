package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// few is how many tests may run again. More of them have a reason that is no accident.
const few = 3

// again runs the tests that failed twice more, by themselves, and returns err if one fails again.
// On a busy machine a test that waits for something may wait too short: such a test is told, as
// unsteady, and ends no run of half an hour. A data race, a panic, a test that never ended and code
// that does not compile have no second try.
func (r *report) again(err error, args []string, goTest func(args []string) error) error {
	tests := make(map[string][]string) // by package
	n := 0
	for _, at := range r.failed {
		if at.test == "" || strings.Contains(at.test, "/") {
			continue
		}
		tests[at.pkg] = append(tests[at.pkg], at.test)
		n++
	}
	if r.defect || n == 0 || n > few {
		return err
	}
	first, passed := r.failed, r.passed
	r.failed = nil
	for _, pkg := range slices.Sorted(maps.Keys(tests)) {
		run := fmt.Sprintf("^(%s)$", strings.Join(tests[pkg], "|"))
		r.print(fmt.Sprintf("again, twice, by themselves: %s %s\n", pkg, run))
		if e := goTest(append(flagsOf(args), "-count=2", "-run="+run, pkg)); e != nil {
			r.failed, r.passed = first, passed
			return cmp.Or(err, e)
		}
	}
	r.unsteady, r.passed, r.packages = first, passed+len(first), r.packages-len(tests)
	return nil
}

// flagsOf are the arguments of `go test` without the packages, which stand last.
func flagsOf(args []string) []string {
	end := len(args)
	for end > 0 && (strings.HasPrefix(args[end-1], "./") || args[end-1] == "." ||
		strings.HasPrefix(args[end-1], module)) {
		end--
	}
	return slices.Clone(args[:end])
}
