package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	startsProgram = regexp.MustCompile(`exec\.Command(Context)?\((t\.Context\(\), |ctx, )?\S+`)
	itself        = "os.Args[0]" // the cache knows the test's own code
	// readsNothing are packages whose programs read what the test has opened.
	readsNothing = map[string]bool{"dedup/redis": true}
	runsEachTime = regexp.MustCompile(`testkit\.(EachRun|Program|RunReadme)\(`)
)

// Go's cache does not see what a program reads that a test starts. So such a test says that it is
// to run each time.
func TestTestsThatStartProgramsRunEachTime(t *testing.T) {
	starts, each := make(map[string]string), make(map[string]bool)
	for _, s := range sources(t) {
		if !s.isTest() || strings.HasPrefix(s.name, "internal/testkit/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, s.name))
		if err != nil {
			t.Fatal(err)
		}
		for _, start := range startsProgram.FindAllString(string(text), -1) {
			if !strings.Contains(start, itself) {
				starts[s.dir()] = s.name
			}
		}
		if runsEachTime.Match(text) {
			each[s.dir()] = true
		}
	}
	if len(starts) == 0 {
		t.Fatal("no test starts a program")
	}
	for dir, file := range starts {
		if !each[dir] && !readsNothing[dir] {
			t.Errorf("%s starts a program: without testkit.EachRun() Go takes old results of "+
				"%s for still good", file, dir)
		}
	}
}
