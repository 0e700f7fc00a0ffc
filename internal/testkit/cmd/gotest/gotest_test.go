package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kdedup/kdedup/internal/testkit/skip"
)

// played is a run of `go test -json` on a module of one package, with this test file.
type played struct {
	*report
	err    error
	output string
}

func play(t *testing.T, verbose bool, source string) played {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module subject\n\ngo 1.26\n",
		"subject_test.go": "package subject\n\nimport " +
			"(\n\t\"os\"\n\t\"testing\"\n\t\"time\"\n)\n\nvar _ time.Time\nvar _ = os.Remove\n\n" +
			source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	r := newReport(&out, verbose)
	goTest := func(args []string) error {
		events := &lineWriter{line: r.line}
		cmd := exec.CommandContext(t.Context(), "go", append([]string{"test", "-json"}, args...)...)
		cmd.Dir, cmd.Stdout = dir, events
		cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
		defer events.flush()
		return cmd.Run()
	}
	args := []string{"-vet=off", "./..."}
	err := goTest(args)
	if err != nil {
		err = r.again(err, args, goTest)
	}
	r.summary(3)
	return played{report: r, err: err, output: out.String()}
}

func (p played) has(t *testing.T, wanted ...string) {
	t.Helper()
	for _, text := range wanted {
		if !strings.Contains(p.output, text) {
			t.Errorf("the output lacks %q:\n%s", text, p.output)
		}
	}
}

func (p played) lacks(t *testing.T, unwanted string) {
	t.Helper()
	if strings.Contains(p.output, unwanted) {
		t.Errorf("the output has %q:\n%s", unwanted, p.output)
	}
}

const passing = `func TestOne(t *testing.T) { t.Log("nobody asks") }
func TestTwo(t *testing.T) { t.Run("part", func(t *testing.T) {}) }
`

func TestOfAPackageThatPassesTheLastLineIsPrinted(t *testing.T) {
	p := play(t, false, passing)
	p.has(t, "ok  \tsubject\t", "3 tests passed, 0 failed, in 1 packages", "the slowest tests:")
	p.lacks(t, "nobody asks")
	p.lacks(t, "SKIPPED")
	if code := exitCode(p.err, p.report, true); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestVerboseShowsTestsThatPassOnce(t *testing.T) {
	p := play(t, true, passing)
	if n := strings.Count(p.output, "nobody asks"); n != 1 {
		t.Errorf("a line of a test is printed %d times:\n%s", n, p.output)
	}
	if n := strings.Count(p.output, "ok  \tsubject\t"); n != 1 {
		t.Errorf("the line of the package is printed %d times:\n%s", n, p.output)
	}
}

func TestAFailureIsShownAndNamedAtTheEnd(t *testing.T) {
	p := play(t, false, `func TestGood(t *testing.T) { t.Log("nobody asks") }
func TestBad(t *testing.T) { t.Run("part", func(t *testing.T) { t.Error("this is why") }) }
`)
	p.lacks(t, "=== RUN")
	p.has(t, "this is why", "--- FAIL: TestBad/part", "FAIL\tsubject\t",
		"FAILED  subject TestBad/part")
	p.lacks(t, "nobody asks")
	if code := exitCode(p.err, p.report, false); code != 1 {
		t.Errorf("exit code %d", code)
	}
}

func TestAnAccidentIsToldAndEndsNoRun(t *testing.T) {
	p := play(t, false, `func TestGood(t *testing.T) {}
func TestOnce(t *testing.T) { t.Run("part", func(t *testing.T) { if os.Mkdir("seen", 0o700) == nil { t.Error("this is why") } }) }
`)
	p.has(t, "this is why", "3 tests passed, 0 failed, in 1 packages",
		"UNSTEADY  subject TestOnce: ", "UNSTEADY  subject TestOnce/part: ")
	if code := exitCode(p.err, p.report, true); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestWhatIsNoAccidentHasNoSecondTry(t *testing.T) {
	for name, source := range map[string]string{
		"a panic": `func TestBad(t *testing.T) { if os.Mkdir("seen", 0o700) == nil { panic("at work") } }`,
		"many failures": `func TestBad1(t *testing.T) { if os.Mkdir("1", 0o700) == nil { t.Error() } }
func TestBad2(t *testing.T) { if os.Mkdir("2", 0o700) == nil { t.Error() } }
func TestBad3(t *testing.T) { if os.Mkdir("3", 0o700) == nil { t.Error() } }
func TestBad4(t *testing.T) { if os.Mkdir("4", 0o700) == nil { t.Error() } }`,
		"every second time": `func TestBad(t *testing.T) { if os.Mkdir("seen", 0o700) == nil { t.Error() } else { os.Remove("seen") } }`,
	} {
		t.Run(name, func(t *testing.T) {
			p := play(t, false, source)
			p.has(t, "FAILED  subject TestBad")
			p.lacks(t, "UNSTEADY")
			if code := exitCode(p.err, p.report, false); code != 1 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

func TestADataRaceHasNoSecondTry(t *testing.T) {
	r := newReport(new(bytes.Buffer), false)
	r.end(event{Action: "fail", Package: "subject", Test: "TestBad"})
	if r.defect {
		t.Error("a failure is a defect")
	}
	r.hear(event{Package: "subject", Test: "TestBad", Output: "WARNING: DATA RACE\n"})
	r.end(event{Action: "fail", Package: "subject", Test: "TestBad"})
	if !r.defect {
		t.Error("a data race is none")
	}
}

func TestATestThatNeverEndsIsNamed(t *testing.T) {
	p := play(t, false, `func TestBad(t *testing.T) { t.Log("said before"); panic("at work") }`)
	p.has(t, "said before", "panic: at work", "FAILED  subject TestBad")
}

func TestWhatDoesNotCompileIsAFailure(t *testing.T) {
	p := play(t, false, `func TestBad(t *testing.T) { noSuchThing() }`)
	p.has(t, "undefined: noSuchThing", "FAILED  subject")
	if code := exitCode(p.err, p.report, false); code != 1 {
		t.Errorf("exit code %d", code)
	}
}

func TestASlowTestIsListedWithTheTimeOfItsParallelParts(t *testing.T) {
	p := play(t, false, `func TestSlow(t *testing.T) { for _, n := range []string{"a", "b"} { t.Run(n, func(t *testing.T) {
	t.Parallel()
	for range time.Tick(150 * time.Millisecond) { return }
}) } }
`)
	if took := p.took[place{"subject", "TestSlow"}]; took < 100*time.Millisecond {
		t.Errorf("it took %v", took)
	}
	p.has(t, "s  subject TestSlow\n")
	p.lacks(t, "TestSlow/a")
}

func TestWhatIsMissingIsListedWithItsRemedyAndFailsInCI(t *testing.T) {
	p := play(t, false, fmt.Sprintf(`func TestOne(t *testing.T) { t.Skip(%[1]q + "there is no redis-server") }
func TestTwo(t *testing.T) { t.Skip(%[1]q + "there is no redis-server") }
func TestHalf(t *testing.T) { t.Log(%[1]q + "the panels of Redis") }
`, skip.NotTested))
	p.has(t, "3 tests were SKIPPED", "     2  there is no redis-server (subject)",
		"     1  the panels of Redis (subject)", "make packages")
	if code := exitCode(p.err, p.report, false); code != 0 {
		t.Errorf("exit code %d without CI", code)
	}
	if code := exitCode(p.err, p.report, true); code != 1 {
		t.Errorf("exit code %d in CI", code)
	}
}

func TestASkipThatLiesInTheSubjectIsNoGap(t *testing.T) {
	p := play(t, false, `func TestOne(t *testing.T) { t.Skip("there is no transaction") }`)
	p.has(t, "1 tests do not apply", "there is no transaction (subject)")
	p.lacks(t, "make packages")
	if code := exitCode(p.err, p.report, true); code != 0 {
		t.Errorf("exit code %d in CI", code)
	}
}

func TestASkipOfAReasonThatIsNotKnownFailsInCI(t *testing.T) {
	p := play(t, false, `func TestOne(t *testing.T) { t.Skip("not today") }`)
	if code := exitCode(p.err, p.report, true); code != 1 {
		t.Errorf("exit code %d in CI", code)
	}
}

func TestTheExitCodeIsThatOfGoTest(t *testing.T) {
	err := exec.CommandContext(t.Context(), "sh", "-c", "exit 3").Run()
	if code := exitCode(err, newReport(nil, false), true); code != 3 {
		t.Errorf("exit code %d", code)
	}
	if code := exitCode(errors.New("no go"), newReport(nil, false), false); code != 1 {
		t.Errorf("exit code %d", code)
	}
}

func TestVerboseIsAskedForBeforeTheArgumentsOfTests(t *testing.T) {
	for _, c := range []struct {
		args []string
		want bool
	}{
		{[]string{"-race", "./..."}, false},
		{[]string{"-run", "TestOne", "-v", "."}, true},
		{[]string{".", "-args", "-v"}, false},
	} {
		if got := verbose(c.args); got != c.want {
			t.Errorf("%q: %v, want %v", c.args, got, c.want)
		}
	}
}
