package e2e_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
)

// SIGTERM while the store is silent: the batch in hand cannot be finished. It is given up after
// shutdown_timeout, and delivered again. A second signal does not wait for that. All cases share
// one silence of the store: both deliveries, each with one signal and with two.
func TestSIGTERMWithTheStoreDown(t *testing.T) {
	t.Parallel()
	servers.Need(t)
	brokers := testkit.Kafka(t)
	node, err := servers.StartCassandra(t.Context(),
		servers.CassandraOptions{Dir: t.TempDir(), Host: "127.0.0.77", Heap: "512m"})
	servers.ForTest(t, node, err)
	at := place{brokers: brokers, store: cassandraStore(node.Addr(), testkit.Keyspace(t))}
	var cases []*signalled
	for _, signals := range []int{1, 2} {
		for _, delivery := range []string{exactlyOnce, atLeastOnce} {
			cases = append(cases, startSignalled(t, at, delivery, signals))
		}
	}
	if err := node.Pause(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = node.Resume() }) // unless the test came that far itself
	for _, c := range cases {
		c.produce(20_000, 16)
	}
	for _, c := range cases {
		c.waitUndecided()
	}
	for _, c := range cases {
		c.one.terminate()
	}
	for _, c := range cases {
		c.waitOver()
	}
	if err := node.Resume(); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		c.start("one")
	}
	for _, c := range cases {
		c.finish()
	}
}

// signalled is a pipeline whose process gets signals while the store is silent.
type signalled struct {
	*deployment
	signals int
	one     *instance
}

func (c *signalled) String() string { return fmt.Sprintf("%s, %d signals", c.delivery, c.signals) }

// startSignalled returns when the process is ready.
func startSignalled(t *testing.T, at place, delivery string, signals int) *signalled {
	t.Helper()
	d := deployAt(t, at, delivery, "batch_records: 500")
	timeout := "3s"
	if signals == 2 {
		timeout = "1h"
	}
	d.waitTopics()
	one := d.launch(kdedup, "one", "KDEDUP_SHUTDOWN_TIMEOUT="+timeout)
	one.waitReady()
	return &signalled{d, signals, one}
}

// waitTopics waits until the broker shows what setup has made; a busy one takes a while.
func (d *deployment) waitTopics() {
	d.t.Helper()
	topics := []string{d.output(), d.group + ".fence", d.input + ".dlq"}
	testkit.Eventually(d.t, time.Minute, "the topics of the deployment", func() bool {
		details, err := d.admin.ListTopics(d.t.Context(), topics...)
		return err == nil && details.Error() == nil
	})
}

// deleteTopic returns when the broker takes nothing for the topic any more, which may be later than
// its answer.
func (d *deployment) deleteTopic(name string) {
	d.t.Helper()
	if _, err := d.admin.DeleteTopic(d.t.Context(), name); err != nil {
		d.t.Fatal(err)
	}
	testkit.Eventually(d.t, time.Minute, "the end of "+name, func() bool {
		details, err := d.admin.ListTopics(d.t.Context(), name)
		return err == nil && !details.Has(name)
	})
}

// waitUndecided returns when the process has claimed and got no answer.
func (c *signalled) waitUndecided() {
	c.t.Helper()
	testkit.Eventually(c.t, time.Minute, "claims that wait: "+c.String(), func() bool {
		return c.one.counter("kdedup_claims_ambiguous_total") > 0
	})
}

// waitOver repeats the signal, if there shall be two, until the process has ended, and looks how.
func (c *signalled) waitOver() {
	c.t.Helper()
	testkit.Eventually(c.t, time.Minute, "the end of the process: "+c.String(), func() bool {
		if c.signals > 1 {
			_ = c.one.cmd.Process.Signal(syscall.SIGTERM) // it may be over
		}
		return c.one.over()
	})
	status := c.one.cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case c.signals == 1 && status.ExitStatus() != 1:
		c.t.Errorf("%v: exit code %d", c, status.ExitStatus())
	case c.signals == 2 && (!status.Signaled() || status.Signal() != syscall.SIGTERM):
		c.t.Errorf("%v: not ended by the signal: %v", c, c.one.cmd.ProcessState)
	}
}

// finish checks what the next process made of it.
func (c *signalled) finish() {
	c.t.Helper()
	c.waitFor(1)
	v := c.check()
	if v.lost > 0 || c.delivery == exactlyOnce && v.doubled > 0 {
		c.t.Errorf("%v: %d lost, %d doubled", c, v.lost, v.doubled)
	}
}
