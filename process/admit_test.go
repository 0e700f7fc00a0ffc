package process

import (
	"strings"
	"testing"
	"time"

	"github.com/kdedup/kdedup/internal/testkit"
)

// notReady returns why the process is not ready.
func (r *reloading) notReady() string {
	r.t.Helper()
	var reasons []string
	for _, c := range r.process.checks() {
		if err := c.Func(r.t.Context()); err != nil {
			reasons = append(reasons, c.Name+": "+err.Error())
		}
	}
	return strings.Join(reasons, "\n")
}

func (r *reloading) waitNotReady(reason string) {
	r.t.Helper()
	testkit.Eventually(r.t, time.Minute, "not ready: "+reason, func() bool {
		return strings.Contains(r.notReady(), reason)
	})
}

// waitLanes waits until both lanes of a pipeline have partitions: its group is at rest then.
func (r *reloading) waitLanes(topic string) {
	r.t.Helper()
	testkit.Eventually(r.t, time.Minute, "both lanes of "+topic+" have partitions", func() bool {
		log := r.log.String()
		assigned := `msg="partitions assigned" topic=` + topic + " lane="
		return strings.Contains(log, assigned+"0") && strings.Contains(log, assigned+"1")
	})
}

// An entry whose topics do not exist waits. The others go on, at the start and in a reload that is
// about something else. It begins when its topics are there.
func TestWhatOneEntryLacksStopsNoOtherOne(t *testing.T) {
	r := newReloading(t)
	r.write(pipelineOf("returns"), orders())
	r.run(neverLook)
	r.drain("orders", 10)
	r.waitNotReady("topic returns: topics[0]: input topic returns does not exist")
	r.write(pipelineOf("returns"), orders(), payments())
	r.reload()
	r.drain("payments", 10)
	r.waitLanes("payments")
	before := r.look("payments")
	r.create("returns")
	r.waitNotReady("topics[0]: topic returns.clean does not exist")
	r.setup()
	r.waitRunning("returns", true)
	r.drain("returns", 10)
	r.drain("orders", 10)
	r.untouched("payments", before)
	r.waitReady()
	if n := strings.Count(r.log.String(), "input topic returns does not exist"); n != 1 {
		t.Errorf("the log tells it %d times", n)
	}
	r.write(orders(), payments())
	r.reload()
	r.waitReady()
}

// A pipeline that cannot go on ends alone, and begins again with its topic.
func TestAPipelineThatCannotGoOnEndsAlone(t *testing.T) {
	r := startReloading(t, neverLook)
	r.drain("orders", 10)
	before := r.settled("payments", 2)
	r.remove("orders")
	r.waitNotReady("topic orders: ")
	r.untouched("payments", before)
	r.create("orders")
	r.produce("orders", 5)
	testkit.Eventually(t, time.Minute, "the new topic is read", func() bool {
		n := r.forwarded("orders")
		return n == 15 || n == 5
	})
	r.untouched("payments", before)
}
