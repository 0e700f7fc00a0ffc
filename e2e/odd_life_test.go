package e2e_test

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

// play sets up, lives, and passes judgement.
func (o *trial) play() {
	o.setUp()
	o.write()
	if o.latest {
		o.early = o.serial
	}
	counted, killed := make(map[string]int), false
	for life := range 1 + o.random.IntN(3) {
		if life > 0 {
			o.rest()
		}
		p := o.begin()
		if life > 0 || o.latest {
			// From then on start: latest has decided. A predecessor that was killed may be in the
			// group for 45 s.
			testkit.Eventually(o.t, 3*time.Minute, "the process is ready", p.ready)
		}
		for range o.random.IntN(3) {
			if o.chance(40) {
				o.grow()
			}
			o.write()
		}
		if o.chance(25) {
			p.clear()
			killed = true
			continue
		}
		o.touch() // what is committed again has offsets again
		o.waitDone(p)
		o.leave(p, counted)
	}
	if killed { // it counts nothing any more, and may have left some
		counted = nil
		p := o.begin()
		o.touch()
		o.waitDone(p)
		o.leave(p, nil)
	}
	o.account(counted)
}

// begin starts the process. Of some nobody reads the log, which says much.
func (o *trial) begin() *instance {
	o.t.Helper()
	if !o.chance(25) {
		return o.start("one")
	}
	p := o.launch(kdedup, "one", "KDEDUP_LOG_LEVEL=debug")
	p.deafen()
	return p
}

// leave stops the process, and adds what it has counted.
func (o *trial) leave(p *instance, counted map[string]int) {
	o.t.Helper()
	if peak := peakOf(p); peak > mostMemory {
		o.t.Errorf("the process had %d MiB", peak>>20)
	}
	for outcome, n := range p.outcomes() {
		if counted != nil {
			counted[outcome] += n
		}
	}
	p.stop()
}

// rest is the time without a process: its topics go on, its offsets may expire.
func (o *trial) rest() {
	o.t.Helper()
	if o.chance(50) {
		o.write()
	}
	if o.chance(30) {
		o.grow()
	}
	if !o.chance(30) {
		return
	}
	o.t.Log("the offsets expire")
	expired := make(kadm.TopicsSet)
	for p := range o.partitions {
		expired.Add(o.input, p)
	}
	// A member that was killed is in the group for a while; then offsets cannot be deleted.
	answers, err := o.admin.DeleteOffsets(o.t.Context(), o.group, expired)
	if err == nil {
		err = answers.Error()
	}
	if err != nil {
		o.t.Logf("they do not: %v", err)
	}
}

// grow gives the topics one more partition, the input first or last.
func (o *trial) grow() {
	o.t.Helper()
	order := []string{o.input, o.output()}
	if o.chance(50) {
		order = []string{o.output(), o.input}
	}
	o.t.Logf("%s grow to %d partitions", strings.Join(order, " and then "), o.partitions+1)
	for _, topic := range order {
		widen(o.t, o.admin, int(o.partitions+1), topic)
	}
	o.partitions++
}

// touch writes a plain record to each partition.
func (o *trial) touch() {
	o.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(o.brokers...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic(o.input))
	if err != nil {
		o.t.Fatal(err)
	}
	defer client.Close()
	for p := range o.partitions {
		o.serial++
		r := &kgo.Record{Partition: p, Key: []byte("touch"), Value: []byte("touch"),
			Headers: []kgo.RecordHeader{
				{Key: "serial", Value: fmt.Append(nil, o.serial)},
				{Key: o.idHeader(), Value: fmt.Appendf(nil, "%s/%d", o.input, o.serial)},
			}}
		if err := client.ProduceSync(o.t.Context(), r).FirstErr(); err != nil {
			o.t.Fatal(err)
		}
	}
}

// mostMemory is the bound for one lane and batches of the default size; see docs/kubernetes.md.
const mostMemory = 1 << 30

// peakOf is the most memory that the process had, in bytes; 0 where the system does not tell.
func peakOf(p *instance) (bytes int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	var kib int64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		return 0
	}
	return kib << 10
}

// standstill is how long no record may be committed while some wait: new partitions are found
// within 30 s, and the group misses a process that was killed within 45 s.
const standstill = 2 * time.Minute

// waitDone returns when the group has committed all.
func (o *trial) waitDone(p *instance) {
	o.t.Helper()
	last, since := int64(-1), time.Now()
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		<-tick.C
		done, end := o.progress()
		if done != last {
			last, since = done, time.Now()
		}
		switch {
		case done == end:
			return
		case p.over():
			o.t.Fatalf("the process has ended:\n%s", p.text())
		case time.Since(since) > standstill:
			o.t.Fatalf("%d offsets wait, and nothing is committed any more:\n%s", end-done,
				p.text())
		}
	}
}
