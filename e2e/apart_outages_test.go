package e2e_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// inSmallBatches has outages come in mid-run.
var inSmallBatches = []string{"session_timeout: 6s", "batch_records: 200"}

// cluster is one of two, a broker of the test's own behind a proxy.
type cluster struct {
	*servers.Server
	way *testkit.Proxy // of kdedup's processes to it
}

func startCluster(t *testing.T) cluster {
	t.Helper()
	s, err := servers.StartKafka(t.Context(), servers.KafkaOptions{Dir: t.TempDir(),
		Heap: "320m", Flags: servers.QuickStart, Proxies: 1})
	servers.ForTest(t, s, err)
	route := s.Routes()[0]
	return cluster{s, testkit.StartProxyAt(t, route.Listen, route.Upstream)}
}

// between has the input and a claim log on one cluster, and all else on the other one.
func between(t *testing.T) (at place, input, output cluster) {
	t.Helper()
	servers.Need(t)
	input, output = startCluster(t), startCluster(t)
	return place{brokers: []string{input.Addr()}, output: []string{output.Addr()},
		store: fmt.Sprintf("{type: kafka, kafka: {path: %q}}", t.TempDir()),
		kafka: fmt.Sprintf("{brokers: %q, output: {brokers: %q}}", input.way.Addr(),
			output.way.Addr())}, input, output
}

// Each cluster dies, is mute for longer than a session, and is slow, while records flow. The lanes
// wait, say so, and go on: nothing is lost, and nothing is there twice.
func TestAnOutageOfEitherClusterOnlyDelaysExactlyOnce(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	at, input, output := between(t)
	d := deployAt(t, at, exactlyOnce, inSmallBatches...)
	d.produce(120_000, 48)
	direct := at
	direct.kafka = ""
	one, two := d.at(direct).start("one"), d.start("two")
	one.waitReady()
	two.waitReady()
	share := 0.0
	for _, c := range []cluster{input, output} {
		for _, trouble := range []func(*testing.T, cluster, ...*instance){dies, isMute, isSlow} {
			share += 0.13
			d.waitFor(share)
			if committed, end := d.progress(); committed == end {
				t.Fatal("the backlog was done before the outage")
			}
			trouble(t, c, one, two)
		}
	}
	d.waitFor(1)
	if v := d.check(); v.lost > 0 || v.doubled > 0 {
		t.Errorf("%d lost, %d doubled", v.lost, v.doubled)
	}
	one.stop()
	two.stop()
}

// dies kills the broker, and restarts it when the first process, whose connections to it are
// refused, has told that it is away.
func dies(t *testing.T, c cluster, processes ...*instance) {
	t.Helper()
	const told = "a broker cannot be reached"
	direct := processes[0]
	before := strings.Count(direct.text(), told)
	c.Kill()
	testkit.Eventually(t, time.Minute, direct.name+" misses the broker", func() bool {
		return strings.Count(direct.text(), told) > before
	})
	if err := c.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// isMute has the broker take connections and answer nothing, until the members' sessions are over.
func isMute(t *testing.T, c cluster, processes ...*instance) {
	t.Helper()
	if err := c.Pause(); err != nil {
		t.Fatal(err)
	}
	idle(t, 9*time.Second)
	if err := c.Resume(); err != nil {
		t.Fatal(err)
	}
	for _, i := range processes {
		i.waitReady()
	}
}

// isSlow has each answer to the second process come up to half a second late.
func isSlow(t *testing.T, c cluster, _ ...*instance) {
	t.Helper()
	c.way.Make(testkit.LateAnswers, 500*time.Millisecond)
	idle(t, 5*time.Second)
	c.way.Make(testkit.NoTrouble, 0)
}

// idle is how long a trouble lasts.
func idle(t *testing.T, trouble time.Duration) {
	t.Helper()
	select {
	case <-time.After(trouble):
	case <-t.Context().Done():
	}
}

// A member stands still for longer than its session, again and again, wherever its batch is then.
// The others go on meanwhile. What it has in hand when it wakes up becomes visible once.
func TestAMemberThatStoodStillCommitsNothingOnTheOtherCluster(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	at, _, output := between(t)
	at.store = strings.Replace(at.store, "{path:", "{cluster: output, path:", 1)
	d := deployAt(t, at, exactlyOnce, inSmallBatches...)
	d.produce(100_000, 49)
	one, two := d.start("one"), d.start("two")
	one.waitReady()
	two.waitReady()
	groups := kadm.NewClient(testkit.KafkaClient(t, []string{output.Addr()}))
	for stop := range 5 {
		zombie := []*instance{two, one}[stop%2]
		d.waitFor(0.15 * float64(stop+1))
		if err := zombie.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, time.Minute, "the group goes on without "+zombie.name, func() bool {
			found, err := groups.DescribeGroups(t.Context(), d.group)
			return err == nil && found[d.group].State == "Stable" &&
				len(found[d.group].Members) == 2 // the lanes of the other one
		})
		if err := zombie.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, time.Minute, zombie.name+" is back", func() bool {
			found, err := groups.DescribeGroups(t.Context(), d.group)
			return err == nil && found[d.group].State == "Stable" &&
				len(found[d.group].Members) == 4
		})
	}
	d.waitFor(1)
	if v := d.check(); v.lost > 0 || v.doubled > 0 {
		t.Errorf("%d lost, %d doubled", v.lost, v.doubled)
	}
	one.stop()
	two.stop()
}

// An empty cluster takes the address of the output's, and somebody runs setup on it. Neither a
// process that was running nor a new one takes that for a first start. Then the true cluster comes
// back and all goes on, until its fence topic is deleted: that is told, too.
func TestAnotherClusterUnderTheAddressOfTheOutputIsRefused(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	at, _, output := between(t)
	d := deployAt(t, at, exactlyOnce, inSmallBatches...)
	d.produce(10_000, 50)
	one := d.start("one")
	one.waitReady()
	d.waitFor(1)
	output.way.Make(testkit.NoConnections, 0)

	other := startCluster(t)
	impostor := place{brokers: at.brokers, output: []string{other.Addr()}, store: at.store,
		kafka: strings.Replace(at.kafka, output.way.Addr(), other.way.Addr(), 1)}
	there := d.at(impostor)
	there.forwards = impostor.output
	there.command("setup", "--skip-self-test")
	for _, command := range []string{"validate", "run"} {
		if out, code := there.try(command); code != 1 ||
			!strings.Contains(out, "the fences are lost") {
			t.Errorf("%s with another cluster: %d\n%s", command, code, out)
		}
	}
	if got := there.read(d.output()); len(got) > 0 {
		t.Errorf("another cluster has records on %d partitions", len(got))
	}

	output.way.Make(testkit.NoTrouble, 0)
	one.waitReady()
	d.mustBeClean()
	admin := kadm.NewClient(testkit.KafkaClient(t, at.output))
	if _, err := admin.DeleteTopics(t.Context(), d.group+".fence"); err != nil {
		t.Fatal(err)
	}
	one.terminate()
	<-one.exited
	d.command("setup", "--skip-self-test")
	if out, code := d.try("run"); code != 1 || !strings.Contains(out, "the fences are lost") {
		t.Errorf("run without its fences: %d\n%s", code, out)
	}
	d.command("setup", "--adopt-offsets", "--skip-self-test")
	d.produce(12_000, 50) // the same once more, and some
	two := d.start("two")
	d.waitFor(1)
	d.mustBeClean()
	two.stop()
}

// The group shares out the partitions of the fence topic, so the lanes widen that.
func TestAWidenedInputIsReadForTheOtherCluster(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	at, output := onTwoClusters(t)
	d := deployAt(t, at, exactlyOnce, killed...)
	one := d.start("one")
	one.waitReady()
	there := kadm.NewClient(testkit.KafkaClient(t, []string{output.Addr()}))
	widen(t, there, partitions+1, d.output(), d.input+".dlq")
	d.widen(partitions+1, d.input)
	d.spread("first", partitions+1, partitions+1)
	if n := one.counter("kdedup_lane_failures_total"); n > 0 {
		t.Errorf("%v lanes failed", n)
	}
	one.stop()
}
