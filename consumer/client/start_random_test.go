package client

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/kdedup/kdedup/fence"
	"github.com/kdedup/kdedup/internal/testkit"
)

// lived is what a group with start: latest has lived through, and what follows from it.
type lived struct {
	*pins
	random *rand.Rand
	ends   []int64 // of the logs
	begins []int64 // where each partition goes on; what follows from the first start alone
	began  bool
	story  []string
}

// From the first start on nothing is left out, whatever happens to the topics and the group: each
// start goes on at what was handled, or where the first one began, or at the beginning of what came
// later.
func TestWhateverHappensAfterTheFirstStartNothingIsLeftOut(t *testing.T) {
	_, brokers := testkit.FakeKafka(t)
	for seed := range uint64(60) {
		l := &lived{pins: newPins(t, brokers, 1), random: rand.New(rand.NewPCG(seed, 43)),
			ends: make([]int64, 1), begins: make([]int64, 1)}
		if err := l.widen(l.group.FenceTopic, 20); err != nil {
			t.Fatal(err)
		}
		for range 14 {
			l.step()
			if t.Failed() {
				t.Fatalf("seed %d: %v", seed, l.story)
			}
		}
	}
}

func (l *lived) step() {
	l.t.Helper()
	steps := []struct {
		name string
		do   func() error
	}{
		{"a start", l.begin}, {"a start", l.begin}, {"records", l.grow}, {"records", l.grow},
		{"a partition more", l.add}, {"progress", l.handle}, {"offsets expire", l.forget},
		{"the group is renamed", l.rename}, {"the topic is made again", l.remake},
	}
	s := steps[l.random.IntN(len(steps))]
	l.story = append(l.story, s.name)
	if err := s.do(); err != nil {
		l.t.Errorf("%s: %v", s.name, err)
	}
}

func (l *lived) begin() error {
	if !l.began {
		l.began = true
		copy(l.begins, l.ends)
	}
	got := l.start()
	for p, want := range l.begins {
		at, some := got[int32(p)]
		if !some || at < 0 { // a lane goes on at the beginning
			at = 0
		}
		if at != want {
			l.t.Errorf("partition %d of %d records goes on at %d, must be %d", p, l.ends[p], at,
				want)
		}
	}
	if len(l.skipped) == 0 {
		return nil
	}
	told := make(map[int32][2]int64)
	for p, end := range l.begins {
		if end > 0 {
			told[int32(p)] = [2]int64{0, end}
		}
	}
	if diff := cmp.Diff(told, l.skipped); diff != "" {
		l.t.Errorf("what it tells to skip: %s", diff)
	}
	return nil
}

func (l *lived) grow() error {
	p, n := l.random.IntN(len(l.ends)), 1+l.random.IntN(5)
	l.produce(int32(p), n)
	l.ends[p] += int64(n)
	return nil
}

func (l *lived) add() error {
	if len(l.ends) == 6 {
		return nil
	}
	l.ends, l.begins = append(l.ends, 0), append(l.begins, 0)
	return l.widen(l.group.Input, len(l.ends))
}

// handle is what a lane does: it writes fences, and the offsets may follow.
func (l *lived) handle() error {
	p := l.random.IntN(len(l.ends))
	if !l.began || l.begins[p] == l.ends[p] {
		return nil
	}
	l.begins[p] += 1 + l.random.Int64N(l.ends[p]-l.begins[p])
	here, err := l.group.place(l.t.Context(), l.admin)
	if err != nil {
		return err
	}
	f := fence.Fence{}.Advance(fence.Span{TopicID: here.topicID, Next: l.begins[p],
		Group: l.group.Name, Now: time.Now()})
	err = l.client.ProduceSync(l.t.Context(),
		fence.Record(l.group.FenceTopic, l.group.Input, int32(p), f)).FirstErr()
	if err == nil {
		l.commit(l.group.offsetAt(here, int32(p), l.begins[p], -1))
	}
	return err
}

func (l *lived) forget() error {
	l.expire()
	return nil
}

func (l *lived) rename() error {
	l.group.Name += "-renamed"
	return nil
}

// remake is what an operator does who makes a topic again; Kafka deletes the offsets with it.
func (l *lived) remake() error {
	l.recreate()
	l.expire()
	l.ends, l.begins = make([]int64, 1), make([]int64, 1)
	return nil
}

func (l *lived) widen(topic string, partitions int) error {
	answers, err := kadm.NewClient(l.client).UpdatePartitions(l.t.Context(), partitions, topic)
	if err == nil {
		err = answers.Error()
	}
	l.anew()
	return err
}
