package client

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

// pins is a group with start: latest on an input, and what its starts do.
type pins struct {
	t       *testing.T
	brokers []string
	client  *kgo.Client
	admin   *kadm.Client
	group   Group
	ends    map[int32]kadm.ListedOffset
	skipped map[int32][2]int64 // by the last start
}

func newPins(t *testing.T, brokers []string, partitions int32) *pins {
	t.Helper()
	topic := testkit.Topic(t, brokers, "orders", partitions, nil)
	p := &pins{t: t, brokers: brokers, group: Group{Name: topic + "-group", Input: topic,
		FenceTopic: testkit.Topic(t, brokers, "fences", partitions+1, nil), FromEnd: true}}
	p.anew()
	return p
}

// anew takes a client that knows the topic as it is now, as a process that starts does.
func (p *pins) anew() {
	p.client = testkit.KafkaClient(p.t, p.brokers, Writes()...)
	p.admin = kadm.NewClient(p.client)
}

func (p *pins) produce(partition int32, n int) {
	p.t.Helper()
	for range n {
		if err := p.client.ProduceSync(p.t.Context(),
			&kgo.Record{Topic: p.group.Input, Partition: partition}).FirstErr(); err != nil {
			p.t.Fatal(err)
		}
	}
}

// start returns the offsets that the group has after a start.
func (p *pins) start() map[int32]int64 {
	p.t.Helper()
	p.skipped = make(map[int32][2]int64)
	skips := func(partition int32, from, to int64) { p.skipped[partition] = [2]int64{from, to} }
	if err := p.group.PinStart(p.t.Context(), p.client,
		Start{Ends: p.ends, Skips: skips}); err != nil {
		p.t.Fatal(err)
	}
	return p.offsets()
}

func (p *pins) offsets() map[int32]int64 {
	p.t.Helper()
	offsets, err := p.admin.FetchOffsets(p.t.Context(), p.group.Name)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		p.t.Fatal(err)
	}
	at := make(map[int32]int64)
	offsets.Each(func(o kadm.OffsetResponse) { at[o.Partition] = o.At })
	return at
}

func (p *pins) commit(offsets ...kadm.Offset) {
	p.t.Helper()
	all := make(kadm.Offsets)
	for _, o := range offsets {
		o.Topic = p.group.Input
		all.Add(o)
	}
	if err := p.admin.CommitAllOffsets(p.t.Context(), p.group.Name, all); err != nil {
		p.t.Fatal(err)
	}
}

// expire does to the group's offsets what offsets.retention.minutes does.
func (p *pins) expire() {
	p.t.Helper()
	if _, err := p.admin.DeleteGroup(p.t.Context(), p.group.Name); err != nil &&
		!errors.Is(err, kerr.GroupIDNotFound) {
		p.t.Fatal(err)
	}
}

func (p *pins) recreate() {
	p.t.Helper()
	if _, err := p.admin.DeleteTopic(p.t.Context(), p.group.Input); err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.admin.CreateTopic(p.t.Context(), 1, 1, nil, p.group.Input); err != nil {
		p.t.Fatal(err)
	}
	p.anew()
}
