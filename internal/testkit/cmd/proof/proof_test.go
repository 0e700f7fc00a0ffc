package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig runs turns that exist in name only.
type rig struct {
	options
	out bytes.Buffer
	ran []string
}

const sources = "these sources"

func newRig(t *testing.T, file string) *rig {
	t.Helper()
	r := new(rig)
	r.options = options{
		out: &r.out, seed: 7, passed: readMemory(file, sources, 7),
		proofs: []proof{{name: "long", turns: 3, takes: time.Minute},
			{name: "short", turns: 4, takes: time.Second}},
		run: func(_ context.Context, t turn, _ uint64, _ time.Duration) error {
			r.ran = append(r.ran, t.String())
			return nil
		},
	}
	return r
}

func memoryFile(t *testing.T) string { return filepath.Join(t.TempDir(), "bin", "passed") }

func TestEachTurnRunsOnceInTheOrderOfTheSeed(t *testing.T) {
	r := newRig(t, memoryFile(t))
	if code := r.prove(t.Context()); code != 0 {
		t.Errorf("exit code %d", code)
	}
	again := newRig(t, memoryFile(t))
	again.prove(t.Context())
	if !slices.Equal(r.ran, again.ran) {
		t.Errorf("one seed, two orders:\n%v\n%v", r.ran, again.ran)
	}
	other := newRig(t, memoryFile(t))
	other.seed = 8
	other.prove(t.Context())
	if slices.Equal(r.ran, other.ran) {
		t.Errorf("two seeds, one order: %v", r.ran)
	}
	want := []string{"long 1/3", "long 2/3", "long 3/3", "short 1/4", "short 2/4", "short 3/4",
		"short 4/4"}
	slices.Sort(r.ran)
	if !slices.Equal(r.ran, want) {
		t.Errorf("ran %v", r.ran)
	}
}

func TestWhatHasPassedIsNotRunAgainUnlessAsked(t *testing.T) {
	file := memoryFile(t)
	first := newRig(t, file)
	first.run = func(_ context.Context, t turn, _ uint64, _ time.Duration) error {
		if t.name == "long" {
			return errors.New("broken")
		}
		return nil
	}
	if code := first.prove(t.Context()); code != 1 {
		t.Errorf("exit code %d after failures", code)
	}
	second := newRig(t, file)
	second.prove(t.Context())
	slices.Sort(second.ran)
	if want := []string{"long 1/3", "long 2/3", "long 3/3"}; !slices.Equal(second.ran, want) {
		t.Errorf("ran %v, want %v", second.ran, want)
	}
	third := newRig(t, file)
	third.passed.forget()
	third.prove(t.Context())
	if len(third.ran) != 7 {
		t.Errorf("asked to run all again it ran %v", third.ran)
	}
}

func TestOtherSourcesAndOtherSeedsHaveProvenNothing(t *testing.T) {
	file := memoryFile(t)
	newRig(t, file).prove(t.Context())
	one := turn{proof{name: "long", turns: 3}, 1}
	for _, c := range []struct {
		sources string
		seed    uint64
		want    bool
	}{{sources, 7, true}, {"others", 7, false}, {sources, 8, false}, {"", 7, false}} {
		if got := readMemory(file, c.sources, c.seed).has(one); got != c.want {
			t.Errorf("%q, seed %d: passed is %v, want %v", c.sources, c.seed, got, c.want)
		}
	}
}

func TestATurnThatDoesNotFitIsNotBegun(t *testing.T) {
	r := newRig(t, memoryFile(t))
	r.limit = 30 * time.Second
	if code := r.prove(t.Context()); code != 0 {
		t.Errorf("exit code %d: to have no time is no failure", code)
	}
	slices.Sort(r.ran)
	if want := []string{"short 1/4", "short 2/4", "short 3/4", "short 4/4"}; !slices.Equal(r.ran,
		want) {
		t.Errorf("ran %v, want %v", r.ran, want)
	}
	for _, want := range []string{"4 of 7 turns", "no time   long 1/3", "passed    short 4/4",
		"make proof SEED=7"} {
		if !strings.Contains(r.out.String(), want) {
			t.Errorf("the summary lacks %q:\n%s", want, r.out.String())
		}
	}
}

func TestASlowMachineBeginsFewerTurns(t *testing.T) {
	r := newRig(t, memoryFile(t))
	r.limit = time.Minute
	if _, took := r.turn(t.Context(), turn{r.proofs[1], 1}, time.Minute, 90); took != 0 ||
		len(r.ran) > 0 {
		t.Errorf("90 times as slow, a turn of a second was begun with a minute left")
	}
}

func TestATurnThatIsStoppedHasNeitherPassedNorFailed(t *testing.T) {
	r := newRig(t, memoryFile(t))
	r.run = func(context.Context, turn, uint64, time.Duration) error {
		return fmt.Errorf("turn: %w", errNoTime)
	}
	if code := r.prove(t.Context()); code != 0 ||
		!strings.Contains(r.out.String(), "0 of 7 turns") {
		t.Errorf("exit code %d\n%s", code, r.out.String())
	}
}

func TestTheEndOfTheTimeEndsACommandAndItsChildren(t *testing.T) {
	held, end, err := os.Pipe() // which child and grandchild hold open
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "sleep 600 & wait")
	cmd.Stdout = end
	err = runWithin(t.Context(), cmd, 300*time.Millisecond)
	if !errors.Is(err, errNoTime) {
		t.Errorf("%v, want %v", err, errNoTime)
	}
	end.Close()
	if err := held.SetReadDeadline(time.Now().Add(killAfter)); err != nil {
		t.Fatal(err)
	}
	if _, err := held.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("a child runs on: %v", err)
	}
}

func TestACommandKeepsItsOwnVerdict(t *testing.T) {
	if err := runWithin(t.Context(), exec.Command("true"), time.Minute); err != nil {
		t.Error(err)
	}
	if err := runWithin(t.Context(), exec.Command("false"), time.Minute); err == nil ||
		errors.Is(err, errNoTime) {
		t.Errorf("a failure became %v", err)
	}
}

func TestEveryTurnOfTheTableSaysWhatItTakes(t *testing.T) {
	for _, p := range proofs {
		for n := range p.turns {
			asks := p.releases != nil && p.releases[n].env != "" && p.releases[n].tests != ""
			if p.releases == nil {
				asks = len(p.env(1, n+1)) > 0
			}
			if !asks || p.takes == 0 {
				t.Errorf("%s %d says not what it takes, or asks for nothing that make test does "+
					"not run", p.name, n+1)
			}
		}
	}
	if _, err := choose(proofs, "chaos,no-such"); err == nil ||
		!strings.Contains(err.Error(), `"no-such"`) {
		t.Errorf("an unknown name: %v", err)
	}
}

func TestEveryLongTestIsThere(t *testing.T) {
	files, err := filepath.Glob("../../../../e2e/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	for _, file := range files {
		more, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, more...)
	}
	for _, name := range testkit.LongTests {
		if !bytes.Contains(text, []byte("func "+name+"(t *testing.T) {\n\ttestkit.InTurn(t)\n")) {
			t.Errorf("e2e has no %s that waits for its turn", name)
		}
	}
	for _, name := range ofAnyStore {
		if !bytes.Contains(text, []byte("func "+name+"(t *testing.T) {\n")) {
			t.Errorf("e2e has no %s", name)
		}
	}
}

func TestTheSourcesHaveANameThatChangesWithThem(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile("file", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if s := readState(t.Context()); s.sources != "" || s.seed != 1 {
		t.Errorf("without git: %+v", s)
	}
	if out, err := exec.CommandContext(
		t.Context(), "git", "init", "-q",
	).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	write("one")
	one := readState(t.Context()).sources
	write("two")
	two := readState(t.Context()).sources
	write("one")
	if same := readState(t.Context()).sources; one == "" || one == two || one != same {
		t.Errorf("the names are %q, %q and again %q", one, two, same)
	}
}
