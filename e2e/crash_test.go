package e2e_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kdedup/kdedup/internal/pause"
	"github.com/kdedup/kdedup/internal/testkit"
)

// crashing builds the kdedup that can be killed at a point of its work, see internal/crashpoint.
var crashing = sync.OnceValues(func() (binary string, err error) {
	binary = filepath.Join(filepath.Dir(kdedup), "kdedup-crashing")
	build := exec.Command("go", "build", "-tags", "crashpoints", "-o", binary,
		"github.com/kdedup/kdedup/cmd/kdedup")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build with crash points: %w\n%s", err, out)
	}
	return binary, nil
})

// crash is one kill: the n-th time that the process comes to the point.
type crash struct {
	point string
	n     int
}

func (c crash) String() string { return fmt.Sprintf("%s#%d", c.point, c.n) }

// crashCase is a pipeline that is killed, once or several times, and then left to finish.
type crashCase struct {
	delivery string
	crashes  []crash
	repeats  repeats
	renews   bool // it is copies that are at work
}

func (c crashCase) String() string {
	names := make([]string, len(c.crashes))
	for i, crash := range c.crashes {
		names[i] = crash.String()
	}
	return c.delivery + "/" + strings.Join(names, ",")
}

// crashSettings make batches small and leave no second lane, which would be killed at a point of
// its own.
var crashSettings = []string{"lanes: 1", "batch_records: 300", "session_timeout: 6s"}

// run kills, goes on and checks.
func (c crashCase) run(t *testing.T, at place, records int) {
	settings := crashSettings
	if c.renews {
		settings = append(slices.Clone(settings), "ttl: "+renewedTTL.String(), "ttl_from: last")
	}
	d := deployAt(t, at, c.delivery, settings...)
	d.largest = 200 // bytes: the fake Kafka is under the race detector, which makes copies slow
	d.produce(records, 5)
	if c.renews {
		d.letClaimsBeDue(300)
	}
	for _, crash := range c.crashes {
		d.dieAt(crash)
	}
	survivor := d.start("one")
	d.waitFor(1)
	survivor.stop()
	v := d.check()
	if v.lost > 0 {
		t.Errorf("%d lost", v.lost)
	}
	if !c.repeats.allow(v.doubled) {
		t.Errorf("%d repeated, want %v", v.doubled, c.repeats)
	}
}

// renewedTTL is longer than a case takes.
const renewedTTL = 2 * time.Minute

// letClaimsBeDue handles what there is, and then writes copies that have claims to renew.
func (d *deployment) letClaimsBeDue(ids int) {
	d.t.Helper()
	before := d.start("one")
	d.waitFor(1)
	before.stop()
	if !pause.For(d.t.Context(), renewedTTL/10+time.Second) {
		d.t.Fatal(d.t.Context().Err())
	}
	d.copies(0, ids, 1)
}

// dieAt runs a process until it is killed at the point.
func (d *deployment) dieAt(at crash) {
	d.t.Helper()
	binary, err := crashing()
	if err != nil {
		d.t.Fatal(err)
	}
	before, _ := d.progress()
	i := d.launch(binary, "one", "KDEDUP_CRASH_AT="+at.String())
	if atShutdown[at.point] {
		testkit.Eventually(d.t, time.Minute, "progress", func() bool {
			committed, _ := d.progress()
			return committed > before
		})
		i.terminate()
	}
	testkit.Eventually(d.t, 2*time.Minute, "the kill at "+at.String(), i.over)
	status, ok := i.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL ||
		i.last != "killed at "+at.point {
		d.t.Fatalf("the process was not killed at %v: it ended with %v after %q", at, i.err, i.last)
	}
}

// side runs the cases, as many at a time as width says: they mostly wait until the group notices
// that a member is dead, so the number of processors is no measure.
func side(t *testing.T, width int, cases []crashCase, run func(t *testing.T, c crashCase)) {
	t.Helper()
	next := make(chan crashCase)
	var workers sync.WaitGroup
	for range width {
		workers.Go(func() {
			for c := range next {
				t.Run(c.String(), func(t *testing.T) { run(t, c) })
			}
		})
	}
	for _, c := range cases {
		next <- c
	}
	close(next)
	workers.Wait()
}
