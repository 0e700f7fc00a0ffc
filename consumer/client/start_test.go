package client

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kdedup/kdedup/fence"
	"github.com/kdedup/kdedup/internal/testkit"
)

func quiet(int32, int64, int64) {}

func (p *pins) startsAt(what string, want map[int32]int64) {
	p.t.Helper()
	if diff := cmp.Diff(want, p.start()); diff != "" {
		p.t.Errorf("%s: %s", what, diff)
	}
}

// A group that starts at the end must not skip what arrives before its first commit, so its start
// is committed at once, and only where there is no commit yet.
func TestPinStartCommitsTheEndOnce(t *testing.T) {
	testkit.Kafkas(t, 3, func(t *testing.T, brokers []string) {
		p := newPins(t, brokers, 3)
		p.produce(0, 5)
		p.produce(1, 2)
		p.startsAt("the first start", map[int32]int64{0: 5, 1: 2, 2: 0})
		if diff := cmp.Diff(map[int32][2]int64{0: {0, 5}, 1: {0, 2}}, p.skipped); diff != "" {
			t.Errorf("told of what is skipped: %s", diff)
		}
		p.produce(0, 1)
		p.startsAt("the second start moved", map[int32]int64{0: 5, 1: 2, 2: 0})
		if len(p.skipped) > 0 {
			t.Errorf("the second start says that it skips %v", p.skipped)
		}
	})
}

// What came to it since, and all the while that a lane waited for setup, is read.
func TestAPartitionAddedAfterTheFirstStartBeginsAtItsBeginning(t *testing.T) {
	testkit.Kafkas(t, 3, func(t *testing.T, brokers []string) {
		p := newPins(t, brokers, 1)
		p.produce(0, 3)
		p.startsAt("the first start", map[int32]int64{0: 3})
		if _, err := p.admin.CreatePartitions(t.Context(), 1, p.group.Input); err != nil {
			t.Fatal(err)
		}
		p.anew()
		p.produce(1, 7)
		if got := p.start(); got[1] != 0 {
			t.Errorf("7 records came to partition 1 since the first start, the next one begins "+
				"at %d", got[1])
		}
		p.expire()
		if got := p.start(); got[0] != 3 || got[1] != 0 {
			t.Errorf("with expired offsets it begins at %v", got)
		}
	})
}

// The offsets expire after a stop of 7 days, where no record had come that left a fence.
func TestAStartOutlivesTheOffsetsOfTheGroup(t *testing.T) {
	testkit.Kafkas(t, 3, func(t *testing.T, brokers []string) {
		p := newPins(t, brokers, 2)
		p.produce(0, 3)
		p.startsAt("the first start", map[int32]int64{0: 3, 1: 0})
		p.expire()
		p.produce(0, 4)
		p.produce(1, 5)
		if got := p.start(); got[0] != 3 || got[1] != 0 {
			t.Errorf("records came since the first start, the next one begins behind them: %v", got)
		}
	})
}

func TestARenamedGroupOfTheScopeBeginsWhereTheScopeBegan(t *testing.T) {
	testkit.Kafkas(t, 3, func(t *testing.T, brokers []string) {
		for _, apart := range []bool{false, true} {
			p := newPins(t, brokers, 1)
			p.produce(0, 3)
			p.startsAt("the first start", map[int32]int64{0: 3})
			if apart {
				p.group.Earlier = Earlier{p.group.Name, p.group.FenceTopic}
				p.group.FenceTopic = testkit.Topic(t, brokers, "fences", 2, nil)
			}
			p.group.Name += "-renamed"
			p.produce(0, 4)
			p.startsAt("the renamed group", map[int32]int64{0: 3})
		}
	})
}

func TestATopicThatWasMadeAgainIsReadFromItsBeginning(t *testing.T) {
	testkit.Kafkas(t, 3, func(t *testing.T, brokers []string) {
		for name, handled := range map[string]bool{"handled": true, "only pinned": false} {
			p := newPins(t, brokers, 1)
			p.produce(0, 3)
			p.start()
			if handled {
				old, err := p.admin.ListTopics(t.Context(), p.group.Input)
				if err != nil {
					t.Fatal(err)
				}
				f := fence.Fence{}.Advance(fence.Span{TopicID: old[p.group.Input].ID, Next: 3,
					Group: p.group.Name, Now: time.Now()})
				if err := p.client.ProduceSync(t.Context(), fence.Record(p.group.FenceTopic,
					p.group.Input, 0, f)).FirstErr(); err != nil {
					t.Fatal(err)
				}
			}
			p.recreate()
			p.expire() // Kafka deletes the offsets with the topic
			p.produce(0, 6)
			if got := p.start(); got[0] != 0 {
				t.Errorf("%s: the topic was made again and got 6 records, kdedup begins at %d",
					name, got[0])
			}
		}
	})
}

// Versions before the starts pinned a group in its offsets alone. Some partitions have had no
// record since, and no fence.
func TestAGroupThatAnEarlierVersionPinnedGoesOn(t *testing.T) {
	testkit.Kafkas(t, 3, func(t *testing.T, brokers []string) {
		p := newPins(t, brokers, 2)
		p.produce(0, 5)
		p.produce(1, 5)
		p.commit(kadm.Offset{Partition: 0, At: 3, LeaderEpoch: 0, Metadata: "kdedup:1"})
		p.startsAt("the upgrade", map[int32]int64{0: 3})
		p.expire()
		p.startsAt("after its offsets have expired", map[int32]int64{0: 3})
	})
}

// A process that dies between the first and the last start that it writes has not begun.
func TestAnInterruptedFirstStartIsNotHalfAStart(t *testing.T) {
	testkit.Kafkas(t, 3, func(t *testing.T, brokers []string) {
		p := newPins(t, brokers, 3)
		p.produce(0, 3)
		p.produce(1, 3)
		s, err := p.group.lookAtStart(t.Context(), p.client)
		if err != nil {
			t.Fatal(err)
		}
		starts, _ := s.decide(p.group, true)
		delete(starts, 0)
		delete(starts, 1)
		if err := p.group.writeStarts(t.Context(), p.client, starts); err != nil {
			t.Fatal(err)
		}
		p.produce(2, 2)
		p.startsAt("the next start", map[int32]int64{0: 3, 1: 3}) // and 2 at its beginning
	})
}

// Replicas of a process begin at the same moment, while records come: what came between their looks
// is read.
func TestProcessesThatBeginTogetherAgreeOnTheLowerStart(t *testing.T) {
	testkit.Kafkas(t, 3, func(t *testing.T, brokers []string) {
		p := newPins(t, brokers, 2)
		p.produce(1, 3)
		var looks []*sight
		for range 2 {
			s, err := p.group.lookAtStart(t.Context(), p.client)
			if err != nil {
				t.Fatal(err)
			}
			looks = append(looks, s)
			p.produce(1, 4)
		}
		for _, s := range looks {
			starts, offsets := s.decide(p.group, true)
			if err := p.group.writeStarts(t.Context(), p.client, starts); err != nil {
				t.Fatal(err)
			}
			if err := p.group.agree(t.Context(), p.client, starts, offsets); err != nil {
				t.Fatal(err)
			}
			if o, _ := offsets.Lookup(p.group.Input, 1); o.At != 3 {
				t.Errorf("one of them begins at %d", o.At)
			}
		}
		p.startsAt("a later one", map[int32]int64{1: 3})
		if last := lastStart(t, p); last.Next() != 3 {
			t.Errorf("compaction leaves %d", last.Next())
		}
	})
}

// lastStart is the last one of partition 1.
func lastStart(t *testing.T, p *pins) fence.Fence {
	t.Helper()
	reader := testkit.KafkaClient(t, p.brokers, kgo.ConsumePartitions(
		map[string]map[int32]kgo.Offset{p.group.FenceTopic: {1: kgo.NewOffset().Relative(-1).
			AtEnd()}}))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	records := reader.PollRecords(ctx, 1).Records()
	if len(records) == 0 {
		t.Fatal("there is none")
	}
	f, err := fence.Parse(records[0])
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A topic that came after the first start of its pattern had no partitions then; one that waited
// for its setup had those, and ended there.
func TestAFirstStartThatWasBeforeTheGroupIsKept(t *testing.T) {
	testkit.Kafkas(t, 3, func(t *testing.T, brokers []string) {
		p := newPins(t, brokers, 2)
		p.produce(0, 3)
		p.produce(1, 3)
		p.ends = map[int32]kadm.ListedOffset{0: {Offset: 2, LeaderEpoch: -1}}
		p.startsAt("one partition was there", map[int32]int64{0: 2, 1: 0})
		p.ends = nil
		p.expire()
		if got := p.start(); got[0] != 2 || got[1] != 0 {
			t.Errorf("the next start begins at %v", got)
		}
	})
}

// The first request to a new cluster meets a coordinator that is still being made.
func TestPinStartWaitsForTheCoordinator(t *testing.T) {
	cluster, brokers := testkit.FakeKafka(t)
	topic, fences := testkit.Topic(t, brokers, "orders", 1, nil),
		testkit.Topic(t, brokers, "fences", 1, nil)
	refusals := 3
	var mu sync.Mutex
	cluster.ControlKey(int16(kmsg.FindCoordinator),
		func(request kmsg.Request) (kmsg.Response, error, bool) {
			mu.Lock()
			defer mu.Unlock()
			if refusals == 0 {
				return nil, nil, false
			}
			refusals--
			cluster.KeepControl()
			answer := request.ResponseKind().(*kmsg.FindCoordinatorResponse)
			answer.ErrorCode = kerr.CoordinatorNotAvailable.Code
			for _, key := range request.(*kmsg.FindCoordinatorRequest).CoordinatorKeys {
				c := kmsg.NewFindCoordinatorResponseCoordinator()
				c.Key, c.ErrorCode = key, kerr.CoordinatorNotAvailable.Code
				answer.Coordinators = append(answer.Coordinators, c)
			}
			return answer, nil, true
		})
	client := testkit.KafkaClient(t, brokers, append(Writes(), kgo.RequestRetries(0))...)
	g := Group{Name: "group", Input: topic, FenceTopic: fences}
	if err := g.PinStart(t.Context(), client, Start{Skips: quiet}); err != nil {
		t.Error(err)
	}
	if refusals > 0 {
		t.Errorf("%d refusals were not met", refusals)
	}
}

// With it, all others are there: a start that finds it has begun.
func TestTheStartOfPartition0ComesLast(t *testing.T) {
	cluster, brokers := testkit.FakeKafka(t)
	p := newPins(t, brokers, 3)
	var mu sync.Mutex
	written := make(map[int32]bool)
	cluster.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		mu.Lock()
		defer mu.Unlock()
		cluster.KeepControl()
		for _, topic := range r.(*kmsg.ProduceRequest).Topics {
			for _, partition := range topic.Partitions {
				if partition.Partition == 0 && len(written) < 2 {
					t.Errorf("that of partition 0 is written behind %v alone", written)
				}
				written[partition.Partition] = true
			}
		}
		return nil, nil, false
	})
	p.start()
	mu.Lock()
	defer mu.Unlock()
	if len(written) != 3 {
		t.Errorf("written: %v", written)
	}
}
