package e2e_test

import (
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

// seen is what the check keeps of a record.
type seen struct {
	id     string
	digest [32]byte // of everything that a consumer sees
}

// verdict is what the clean topic holds, compared with the input.
type verdict struct {
	ids, lost, doubled int
}

// check reads input and clean topic as a read_committed consumer does. Every clean record must be
// byte for byte one of the input's in the same partition, in the same order; repeats are counted.
func (d *deployment) check() verdict {
	d.t.Helper()
	d.waitStable(d.output())
	in, clean := d.read(d.input), d.read(d.output())
	for p, records := range clean {
		d.checkOrder(p, in[p], records)
	}
	return d.count(in, clean)
}

// count looks for each ID of the input on the clean topic, and for what is there twice.
func (d *deployment) count(in, clean map[int32][]seen) verdict {
	d.t.Helper()
	var v verdict
	found := make(map[string]int)
	for _, records := range clean {
		for _, r := range records {
			if found[r.id]++; found[r.id] > 1 {
				v.doubled++
			}
		}
	}
	counted := make(map[string]bool)
	for _, records := range in {
		for _, r := range records {
			if counted[r.id] {
				continue
			}
			counted[r.id] = true
			v.ids++
			if found[r.id] == 0 {
				v.lost++
			}
		}
	}
	d.t.Logf("%d ids, %d lost, %d doubled", v.ids, v.lost, v.doubled)
	return v
}

// mustBeClean wants each ID once.
func (d *deployment) mustBeClean() {
	d.t.Helper()
	if v := d.check(); v.lost > 0 || v.doubled > 0 {
		d.t.Errorf("%s: %d lost, %d doubled", d.input, v.lost, v.doubled)
	}
}

// mustLoseNothing is mustBeClean behind a crash, which at_least_once may repeat records for.
func (d *deployment) mustLoseNothing() {
	d.t.Helper()
	if v := d.check(); v.lost > 0 || d.delivery == exactlyOnce && v.doubled > 0 {
		d.t.Errorf("%s: %d lost, %d doubled", d.input, v.lost, v.doubled)
	}
}

// checkOrder walks both logs. A record that was forwarded before may come again, see verdict.
func (d *deployment) checkOrder(partition int32, in, clean []seen) {
	d.t.Helper()
	place := make(map[[32]byte]int, len(in))
	for i, r := range in {
		place[r.digest] = i
	}
	last, done := -1, make(map[[32]byte]bool, len(clean))
	for i, r := range clean {
		at, ok := place[r.digest]
		if !ok {
			d.t.Fatalf(
				"partition %d, clean record %d: %s is not byte for byte a record of the input",
				partition, i, r.id)
		}
		if at < last && !done[r.digest] {
			d.t.Fatalf("partition %d, clean record %d: %s came out of order", partition, i, r.id)
		}
		done[r.digest] = true
		last = max(last, at)
	}
}

func (d *deployment) read(topic string) map[int32][]seen {
	d.t.Helper()
	found := make(map[int32][]seen)
	testkit.ReadCommitted(d.t, topic, func(r *kgo.Record) {
		found[r.Partition] = append(found[r.Partition],
			seen{string(r.Headers[1].Value), testkit.Digest(r)})
	}, kgo.SeedBrokers(d.brokersOf(topic)...))
	return found
}

// brokersOf are those that have a topic.
func (d *deployment) brokersOf(topic string) []string {
	if d.forwards != nil && topic != d.input {
		return d.forwards
	}
	return d.brokers
}

// waitStable returns when no transaction is open on the topic: the offsets of the last one are
// committed a little earlier than its records, and one that nobody ends must not stay.
func (d *deployment) waitStable(topic string) {
	d.t.Helper()
	admin := kadm.NewClient(testkit.KafkaClient(d.t, d.brokersOf(topic)))
	testkit.Eventually(d.t, time.Minute, "the end of all transactions on "+topic, func() bool {
		stable, err := admin.ListCommittedOffsets(d.t.Context(), topic)
		if err != nil || stable.Error() != nil {
			return false
		}
		ends, err := admin.ListEndOffsets(d.t.Context(), topic)
		if err != nil || ends.Error() != nil {
			return false
		}
		open := false
		ends.Each(func(end kadm.ListedOffset) {
			at, ok := stable.Lookup(topic, end.Partition)
			open = open || !ok || at.Offset != end.Offset
		})
		return !open
	})
}
