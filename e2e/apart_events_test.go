package e2e_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// apartRun is three processes that forward from one cluster to another while things happen.
type apartRun struct {
	*deployment
	there     *kadm.Client // of the output's cluster
	more      func(n int)
	processes []*instance
}

// apartNames are those of the processes.
var apartNames = []string{"one", "two", "three"}

// apartEvent happens to the n-th process, or to a broker.
type apartEvent struct {
	what   string
	happen func(r *apartRun, n int)
}

var (
	oneIsKilled = apartEvent{"a kill", func(r *apartRun, n int) {
		r.processes[n].kill()
		r.processes[n] = r.start(apartNames[n])
	}}
	oneLeaves = apartEvent{"a leave", func(r *apartRun, n int) {
		r.processes[n].stop() // a rebalance, and another one when it is back
		r.processes[n] = r.start(apartNames[n])
	}}
)

// restarts is a broker that ends in good order, or as kill -9 has it, and comes back.
func restarts(what string, broker *servers.Server, killed bool) apartEvent {
	return apartEvent{what, func(r *apartRun, _ int) {
		r.t.Helper()
		if killed {
			broker.Kill()
		} else if err := broker.Stop(); err != nil {
			r.t.Fatal(err)
		}
		if err := broker.Restart(r.t.Context()); err != nil {
			r.t.Fatal(err)
		}
	}}
}

func runApart(t *testing.T, at place, seed uint64) *apartRun {
	t.Helper()
	d := deployAt(t, at, exactlyOnce, inSmallBatches...)
	r := &apartRun{deployment: d, more: d.traffic(seed),
		there: kadm.NewClient(testkit.KafkaClient(t, at.output))}
	for _, name := range apartNames {
		r.processes = append(r.processes, r.start(name))
	}
	for _, i := range r.processes {
		i.waitReady()
	}
	return r
}

// settled is how many records are committed where the group is. Those that wait for the markers of
// their transaction are not among them.
func (r *apartRun) settled() (n int64) {
	offsets, err := r.there.FetchOffsets(r.t.Context(), r.group)
	if err != nil {
		return 0
	}
	offsets.Each(func(o kadm.OffsetResponse) { n += max(0, o.At) })
	return n
}

// through has each event meet a backlog of as many new records, some of which are done.
func (r *apartRun) through(each int, events ...apartEvent) {
	r.t.Helper()
	produced, began := int64(0), time.Now()
	for n, event := range events {
		before := r.settled()
		r.more(each)
		produced += int64(each)
		tick := time.NewTicker(askEvery / 10)
		testkit.Eventually(r.t, time.Minute, "work before "+event.what, func() bool {
			<-tick.C
			return r.settled() > before
		})
		tick.Stop()
		left := produced - r.settled()
		if left <= 0 {
			r.t.Fatalf("all was done before event %d, %s", n, event.what)
		}
		r.t.Logf("%v: event %d, %s, with %d records left",
			time.Since(began).Round(time.Millisecond), n, event.what, left)
		event.happen(r, n%len(r.processes))
		r.processes[n%len(r.processes)].waitReady()
	}
	r.waitFor(1)
	r.mustBeClean()
	for _, i := range r.processes {
		i.stop()
	}
}

// 200,000 records go from one real Kafka to another through three processes. Ten times one of them
// is killed, six times one leaves and comes back. Each broker restarts twice, once after a kill.
func TestKillsRebalancesAndRestartsBetweenTwoClusters(t *testing.T) {
	testkit.InTurn(t)
	t.Parallel()
	at, input, output := between(t)
	kill, leave := oneIsKilled, oneLeaves
	runApart(t, at, 52).through(10_000,
		kill, leave, kill, restarts("a kill of the output", output.Server, true), kill, leave,
		kill, restarts("a kill of the input", input.Server, true), leave, kill, kill, leave,
		restarts("a restart of the output", output.Server, false), kill, leave, kill,
		restarts("a restart of the input", input.Server, false), kill, leave, kill)
}

// What guards every change has one event of each kind.
func TestAKillALeaveAndARestartBetweenTwoClusters(t *testing.T) {
	t.Parallel()
	at, output := onTwoClusters(t)
	runApart(t, at, 53).through(5_000, oneIsKilled, oneLeaves,
		restarts("a kill of the output", output, true))
}
