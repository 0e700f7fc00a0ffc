package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kdedup/kdedup/internal/testkit"
)

// keeping launches a process that keeps what is said, whatever the file says.
func (d *deployment) keeping(name, keep string) *instance {
	d.t.Helper()
	return d.launch(kdedup, name, "KDEDUP_STORE_KEEPERS_KEEP="+keep)
}

// indexOf is where a process would have its index.
func indexOf(at place, name string) string {
	_, path, _ := strings.Cut(at.store, `path: "`)
	path, _, _ = strings.Cut(path, `"`)
	return filepath.Join(path, "instance-"+name)
}

// standstill watches the commits until the returned function is called, which says for how long
// there was none at most.
func (d *deployment) standstill() (longest func() time.Duration) {
	stop, result := make(chan struct{}), make(chan time.Duration, 1)
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		var most time.Duration
		last, since := int64(-1), time.Now()
		for {
			select {
			case <-tick.C:
			case <-stop:
				result <- most
				return
			}
			committed, end := d.progress()
			if committed != last || committed == end {
				last, since = committed, time.Now()
			}
			most = max(most, time.Since(since))
		}
	}()
	return func() time.Duration {
		close(stop)
		return <-result
	}
}

// The lanes have no disk, and the keeper no lanes: it is in no group of the input.
func TestLanesWithoutAnIndexAskAKeeperWithoutLanes(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	deliveries(t, func(t *testing.T, delivery string) {
		at := withKeepers(onClaimLog(t, "files"), "1")
		d := deployAt(t, at, delivery)
		const n = 50_000
		d.produce(n, 41)
		keeper := d.keeping("keeper", "only")
		one, two := d.keeping("one", "none"), d.keeping("two", "none")
		d.waitFor(1)
		testkit.Eventually(t, time.Minute, "outcomes that add up to the records read", func() bool {
			return total(one.outcomes(), two.outcomes()) == n
		})
		keeper.waitReady()
		if got := keeper.outcomes(); len(got) != 0 {
			t.Errorf("the keeper has lanes: %v", got)
		}
		groups, err := d.admin.DescribeGroups(t.Context(), d.group)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range groups[d.group].Members {
			if strings.Contains(m.ClientID, "keeper") {
				t.Errorf("the keeper is in the group of the input as %s", m.ClientID)
			}
		}
		for _, name := range []string{"one", "two"} {
			if _, err := os.Stat(indexOf(at, name)); !os.IsNotExist(err) {
				t.Errorf("%s, which keeps nothing, has an index (%v)", name, err)
			}
		}
		if text := string(keeper.get("/readyz", "")); !strings.Contains(text, "store: ok") {
			t.Errorf("/readyz of the keeper says\n%s", text)
		}
		for _, i := range []*instance{one, two, keeper} {
			i.stop()
		}
		d.mustBeClean()
	})
}

// With copies: 2 the lanes go on at once when one of two keepers is killed, and when that one comes
// back without its files.
func TestAKeeperWithoutLanesThatIsKilledHoldsNobodyUp(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	deliveries(t, func(t *testing.T, delivery string) {
		at := withKeepers(onClaimLog(t, "files"), "2")
		d := deployAt(t, at, delivery, "batch_records: 500")
		keepers := []*instance{d.keeping("keeper-0", "only"), d.keeping("keeper-1", "only")}
		lanes := []*instance{d.keeping("one", "none"), d.keeping("two", "none")}
		for _, i := range append(lanes, keepers...) {
			i.waitReady()
		}
		d.produce(100_000, 42)
		d.waitFor(0.1)
		first := d.standstill()
		keepers[0].kill()
		d.waitFor(0.4)
		stood := []time.Duration{first()}
		if err := os.RemoveAll(indexOf(at, "keeper-0")); err != nil {
			t.Fatal(err)
		}
		d.keeping("keeper-0", "only").waitReady()
		d.produceNew(60_000)
		second := d.standstill()
		keepers[1].kill()
		d.waitFor(1)
		stood = append(stood, second())
		t.Logf("the lanes stood still for %v at most", stood)
		if slices.Max(stood) > 5*time.Second { // brokers take one that is gone for a member for 6 s
			t.Errorf("the lanes stood still for %v", stood)
		}
		d.mustLoseNothing()
	})
}

// A keeper stands still with requests in hand for longer than the brokers take it for a member, and
// goes on with them.
func TestAKeeperThatIsStoppedForLongDoublesNothing(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	deliveries(t, func(t *testing.T, delivery string) {
		d := deployAt(t, withKeepers(onClaimLog(t, "files"), "2"), delivery, "batch_records: 500")
		keepers := []*instance{d.keeping("keeper-0", "only"), d.keeping("keeper-1", "only")}
		lanes := []*instance{d.keeping("one", "none"), d.keeping("two", "none")}
		all := append(lanes, keepers...)
		for _, i := range all {
			i.waitReady()
		}
		d.produce(100_000, 44)
		d.waitFor(0.1)
		longest := d.standstill()
		keepers[0].signal(syscall.SIGSTOP)
		d.awaitMembers(len(all) - 1)
		d.waitFor(0.5)
		stood := longest()
		keepers[0].signal(syscall.SIGCONT)
		d.awaitMembers(len(all))
		keepers[0].waitReady()
		d.produceNew(20_000)
		keepers[1].signal(syscall.SIGSTOP)
		d.waitFor(1)
		keepers[1].signal(syscall.SIGCONT)
		t.Logf("the lanes stood still for %v at most", stood)
		d.mustLoseNothing()
	})
}

func (i *instance) signal(s syscall.Signal) {
	i.t.Helper()
	if err := i.cmd.Process.Signal(s); err != nil {
		i.t.Fatal(err)
	}
}

// awaitMembers returns when so many processes share out the shards.
func (d *deployment) awaitMembers(count int) {
	d.t.Helper()
	group := d.group + ".keepers"
	testkit.Eventually(d.t, time.Minute, fmt.Sprintf("%d members of %s", count, group),
		func() bool {
			found, err := d.admin.DescribeGroups(d.t.Context(), group)
			return err == nil && len(found[group].Members) == count
		})
}

// A keeper begins to keep what the file has more, without a restart.
func TestAKeeperWithoutLanesFollowsTheFile(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	at := withKeepers(onClaimLog(t, "files"), "1")
	d := deployAt(t, at, exactlyOnce)
	keeper := d.keeping("keeper", "only")
	keeper.waitReady()
	next := deployAt(t, at, exactlyOnce)
	both, err := os.ReadFile(d.config)
	if err != nil {
		t.Fatal(err)
	}
	more, err := os.ReadFile(next.config)
	if err != nil {
		t.Fatal(err)
	}
	_, entry, _ := strings.Cut(string(more), "topics:\n")
	if err := os.WriteFile(d.config, append(both, entry...), 0o600); err != nil {
		t.Fatal(err)
	}
	next.produce(1000, 43)
	lanes := next.keeping("lanes", "none")
	next.waitFor(1)
	lanes.stop()
	keeper.stop()
	next.mustBeClean()
}
