package consumer

import (
	"context"
	"errors"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/fence"
)

// leaders is a client of an input whose leaders tell where their epochs ended.
type leaders struct {
	shared
	ends   map[int32]int64 // by partition
	err    error
	asked  map[int32]int32
	placed Offsets
}

func (l *leaders) EpochEnds(
	_ context.Context, epochs map[int32]int32,
) (map[int32]int64, error) {
	l.asked = epochs
	return l.ends, l.err
}

func (l *leaders) Commit(_ context.Context, offsets Offsets, answered func(error)) {
	l.placed = maps.Clone(offsets)
	answered(nil)
}

var orders = [16]byte{1}

// handledIn is the fence of a partition that was handled up to an offset of an epoch.
func handledIn(epoch int32, to int64) fence.Fence {
	return fence.Fence{}.Advance(fence.Span{TopicID: orders, Next: to, LeaderEpoch: epoch})
}

// recordsOf is a fetch of partition 0, of records of an epoch.
func recordsOf(epoch int32, offsets ...int64) kgo.Fetches {
	part := kgo.FetchPartition{}
	for _, offset := range offsets {
		part.Records = append(part.Records, &kgo.Record{Topic: "orders", Offset: offset,
			LeaderEpoch: epoch})
	}
	return kgo.Fetches{{Topics: []kgo.FetchTopic{{Topic: "orders", TopicID: orders,
		Partitions: []kgo.FetchPartition{part}}}}}
}

// The fence of the partition ends at 100 in epoch 5, and so do the group's offsets.
func TestRecordsOfALaterLeaderAreBelievedOnlyWhereItsLogHadGotAsFar(t *testing.T) {
	told := func(end int64) map[int32]int64 { return map[int32]int64{0: end} }
	for _, c := range []struct {
		name    string
		before  func(m *member)
		fetches kgo.Fetches
		ends    map[int32]int64
		asked   bool
		placed  int64 // where the next session begins; -1: this one goes on
		fence   int64
	}{
		{"the same leader", nil, recordsOf(5, 100), nil, false, -1, 100},
		{"another one, whose log is whole", nil, recordsOf(6, 100), told(100), true, -1, 100},
		{"another one, which has read more", nil, recordsOf(6, 120), told(120), true, -1, 100},
		{"the log was cut", nil, recordsOf(7, 100, 101), told(60), true, 60, 100},
		{"it was, and the client is back there", nil, recordsOf(7, 60), told(60), true, -1, 60},
		{"it was, and what came there is compacted", nil, recordsOf(7, 70), told(60), true, 60,
			100},
		{"offsets were set back below that", func(m *member) { m.partitions[0].done = 40 },
			recordsOf(5, 40), nil, false, -1, 100},
		{"it was cut below them", func(m *member) { m.partitions[0].done = 40 },
			recordsOf(7, 40), told(30), true, 30, 100},
		{"a batch was given back", func(m *member) { m.partitions[0].returned = 103 },
			recordsOf(7, 103), told(101), true, 101, 100},
		{"the leader does not know the epoch", nil, recordsOf(7, 100), map[int32]int64{}, true,
			-1, 100},
		{"the brokers tell nothing", nil, recordsOf(7, 100), nil, true, -1, 100},
		{"records without an epoch", nil, recordsOf(-1, 100), nil, false, -1, 100},
		{"skips are accepted", func(m *member) {
			m.opts.AcceptSkips, m.partitions[0].done = true, 500
		}, recordsOf(6, 500), told(200), true, -1, 100},
		{"no fence, and an earlier batch was given back", func(m *member) {
			p := m.partitions[0]
			p.fence, p.epoch, p.done, p.returned = fence.Fence{}, 5, 0, 3
		}, recordsOf(6, 3), told(0), true, 0, 0},
		{"no fence, and nothing was read", func(m *member) {
			m.partitions[0].fence = fence.Fence{}
		}, recordsOf(6, 3), nil, false, -1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := memberOf(t, 0)
			p := m.partitions[0]
			p.fence, p.done = handledIn(5, 100), 100
			if c.before != nil {
				c.before(m)
			}
			client := &leaders{ends: c.ends}
			m.client = client
			err := m.checkCut(t.Context(), c.fetches)
			if (client.asked != nil) != c.asked {
				t.Errorf("it asked for %v", client.asked)
			}
			placed := int64(-1)
			if at, some := client.placed[0]; some {
				placed = at.Offset
			}
			if placed != c.placed || (err != nil) != (c.placed >= 0) ||
				err != nil && !errors.Is(err, errPlaced) {
				t.Errorf("the next session begins at %d, with %v", placed, err)
			}
			if got := p.fence.Next(); got != c.fence {
				t.Errorf("the fence ends at %d", got)
			}
		})
	}
}

func TestALeaderThatDoesNotAnswerEndsThePoll(t *testing.T) {
	m := memberOf(t, 0)
	m.partitions[0].fence, m.partitions[0].done = handledIn(5, 100), 100
	m.client = &leaders{err: kerr.NotLeaderForPartition}
	if _, err := m.batch(t.Context(), recordsOf(6, 100)); !errors.Is(err,
		kerr.NotLeaderForPartition) {
		t.Errorf("got %v", err)
	}
}

// The log ends where the group's offset is, so no record would come that tells.
func TestAnOffsetWithoutAnEpochIsCheckedWhereThePartitionBegins(t *testing.T) {
	for _, c := range []struct {
		name   string
		at     kgo.EpochOffset
		end    int64
		placed Offsets
	}{
		{"the log is whole", kgo.EpochOffset{Epoch: -1, Offset: 100}, 100, nil},
		{"it was cut", kgo.EpochOffset{Epoch: -1, Offset: 100}, 60,
			Offsets{0: {Epoch: 5, Offset: 60}}},
		{"the client looks for itself", kgo.EpochOffset{Epoch: 5, Offset: 100}, 60, nil},
		{"set back below that", kgo.EpochOffset{Epoch: -1, Offset: 50}, 60, nil},
		{"the beginning", kgo.EpochOffset{Epoch: -1, Offset: 0}, 60, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := memberOf(t, 0)
			client := &leaders{ends: map[int32]int64{0: c.end}}
			client.meanwhile = func() {}
			client.committed, client.group = Offsets{0: c.at}, Offsets{0: c.at}
			client.found = fence.Found{Input: orders,
				Fences: map[int32]fence.Fence{0: handledIn(5, 100)}}
			m.client = client
			delete(m.partitions, 0)
			groupEvents{m}.Assigned([]int32{0})
			_, err := m.readFences(t.Context(), nil)
			if errors.Is(err, errPlaced) != (c.placed != nil) {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff(c.placed, client.placed); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A Seek has the client forget that it went back.
func TestALogThatWasCutBelowWhatWasGivenBackEndsTheSession(t *testing.T) {
	for returned, ends := range map[int64]bool{nowhere: false, 50: false, 60: false, 61: true} {
		m := memberOf(t, 0)
		m.partitions[0].returned = returned
		err := m.fetchErrors(t.Context(), kgo.Fetches{{Topics: []kgo.FetchTopic{{
			Topic: "orders", Partitions: []kgo.FetchPartition{{
				Err: &kgo.ErrDataLoss{Topic: "orders", ConsumedTo: 100, ResetTo: 60}}},
		}}}})
		if errors.Is(err, ErrNotDelivered) != ends {
			t.Errorf("records from %d on were given back: %v", returned, err)
		}
	}
}
