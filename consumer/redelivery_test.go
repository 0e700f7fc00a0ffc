package consumer

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/fence"
)

func spanOf(partition int32, first, next int64) *Batch {
	return &Batch{Spans: []Span{{Partition: partition, First: first, Next: next}}}
}

// What was given back must come again before anything behind it: a commit would pass over it.
func TestABatchThatWasGivenBackMustComeAgain(t *testing.T) {
	cases := []struct {
		name  string
		then  func(*member) // after records 10 to 19 were given back
		first int64
		wrong bool
	}{
		{"it comes again", nil, 10, false},
		{"from further back", nil, 7, false},
		{"the records behind it come", nil, 20, true},
		{"a part of it is missing", nil, 11, true},
		{"it came again, and then those behind it", func(m *member) {
			_ = m.checkRedelivery(spanOf(0, 10, 20))
		}, 20, false},
		{"the partition was taken away and came back where another lane left it", func(m *member) {
			m.drop("partitions revoked", []int32{0})
			m.partitions[0] = newPartition(0)
		}, 20, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := memberOf(t, 0)
			m.giveBack(spanOf(0, 10, 20))
			if c.then != nil {
				c.then(m)
			}
			if err := m.checkRedelivery(spanOf(0, c.first, c.first+1)); (err != nil) != c.wrong {
				t.Errorf("got %v", err)
			}
		})
	}
}

// The group may have taken the partition away and given it back before the batch is: then it begins
// at the group's offsets, which another lane may have moved.
func TestAPartitionThatCameBackIsNotHeldToTheOldBatch(t *testing.T) {
	m := memberOf(t, 0)
	m.drop("partitions revoked", []int32{0})
	groupEvents{m}.Assigned([]int32{0})
	m.giveBack(spanOf(0, 10, 20))
	if err := m.checkRedelivery(spanOf(0, 20, 21)); err != nil {
		t.Error(err)
	}
}

// quiet is a client on whose partitions nothing comes for a long time.
type quiet struct {
	shared
	records chan kgo.Fetches
}

func (q *quiet) Poll(ctx context.Context, _ int) kgo.Fetches {
	select {
	case fetches := <-q.records:
		return fetches
	case <-ctx.Done():
		return kgo.NewErrFetch(ctx.Err())
	}
}

// While a lane has no batch in hand, partitions may come and go. That ends no session, and no batch
// that comes later.
func TestARebalanceWhileNothingComesConcernsNoLaterBatch(t *testing.T) {
	for name, rebalance := range map[string]func(groupEvents){
		"the partition comes back": func(e groupEvents) {
			e.Revoked([]int32{0})
			e.Assigned([]int32{0})
		},
		"another one goes": func(e groupEvents) { e.Revoked([]int32{1}) },
		"another one is lost, and comes back": func(e groupEvents) {
			e.Lost([]int32{1})
			e.Assigned([]int32{1})
		},
		"a member waits for the batch in hand": func(e groupEvents) { e.Blocked() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := memberOf(t, 0)
				client := &quiet{records: make(chan kgo.Fetches)}
				client.meanwhile = func() {}
				m.client = client
				groupEvents{m}.Assigned([]int32{0, 1})
				var batch *Batch
				var err error
				polled := make(chan struct{})
				go func() {
					defer close(polled)
					batch, err = m.poll(t.Context())
				}()
				synctest.Wait()
				rebalance(groupEvents{m})
				synctest.Wait()
				client.records <- kgo.Fetches{{Topics: []kgo.FetchTopic{{
					Topic: "orders", Partitions: []kgo.FetchPartition{{Partition: 0,
						Records: []*kgo.Record{{Topic: "orders", Value: []byte("late")}}}},
				}}}}
				<-polled
				if err != nil || batch == nil || len(batch.Records) != 1 {
					t.Fatalf("polled %+v, %v", batch, err)
				}
				if ended := context.Cause(batch.revoked); ended != nil {
					t.Errorf("the batch is to be given back before it is begun: %v", ended)
				}
			})
		})
	}
}

// telling is a client that has something to tell when a rebalance ends its poll.
type telling struct{ shared }

func (c *telling) Poll(context.Context, int) kgo.Fetches {
	c.meanwhile()
	return kgo.Fetches{{Topics: []kgo.FetchTopic{{Topic: "orders", Partitions: []kgo.FetchPartition{
		{Partition: 0, Err: &kgo.ErrDecompressTooLarge{Topic: "orders", Offset: 7}},
	}}}}}
}

// What the client has stopped at it tells once.
func TestARebalanceThatEndsAPollHidesNothingThatItTells(t *testing.T) {
	m := memberOf(t, 0)
	groupEvents{m}.Assigned([]int32{1})
	m.client = &telling{shared{meanwhile: func() { groupEvents{m}.Revoked([]int32{1}) }}}
	if _, err := m.wait(t.Context()); !errors.Is(err, errTaken) {
		t.Errorf("the poll ended with %v", err)
	}
	if h := m.heldLocked(0); h == nil || h.offset != 7 {
		t.Errorf("partition 0 is held at %+v, and not at the batch that cannot be unpacked", h)
	}
}

// memberOf has one partition, whose fence is known.
func memberOf(t *testing.T, partition int32) *member {
	t.Helper()
	m := newMember(Options{
		Input: "orders", Limit: NewBatchLimit(100, 1<<20, time.Minute, nil),
		TransactionTimeout: time.Minute,
		Metrics:            NewCollectors(prometheus.NewRegistry()).For("orders"),
		Logger:             slog.New(slog.DiscardHandler),
	})
	m.partitions[partition] = newPartition(0)
	return m
}

func TestOnlyALaneThatWaitsWhileRecordsLieThereIsStuck(t *testing.T) {
	const often = int(undelivered / lagInterval)
	cases := []struct {
		name    string
		measure func(m *member, i int)
		stuck   bool
	}{
		{"records wait at one position", func(m *member, _ int) { m.noteLag(0, 10, 5) }, true},
		{"more and more wait there", func(m *member, i int) { m.noteLag(0, 10, int64(i+1)) }, true},
		{"none wait", func(m *member, _ int) { m.noteLag(0, 10, 0) }, false},
		{"the position moves", func(m *member, i int) { m.noteLag(0, int64(i), 5) }, false},
		{"it waits now and then", func(m *member, i int) { m.noteLag(0, 10, int64(i%2)) }, false},
		{"the partition is another lane's", func(m *member, _ int) { m.noteLag(1, 10, 5) }, false},
		{"the partition is held", func(m *member, _ int) {
			m.partitions[0].held = &hold{offset: 10, paused: true}
			m.noteLag(0, 10, 5)
		}, false},
		{"what was held is due, and does not come", func(m *member, _ int) {
			m.partitions[0].held = &hold{offset: 10}
			m.noteLag(0, 15, 5)
		}, true},
		{"the lane works on a batch", func(m *member, _ int) {
			idle := m.idle
			m.setIdle(nil)
			m.noteLag(0, 10, 5)
			m.setIdle(idle)
		}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := memberOf(t, 0)
			var cause error
			m.setIdle(func(err error) { cause = err })
			for i := range often + 1 {
				if cause != nil {
					t.Fatalf("stuck after %d measurements: %v", i, cause)
				}
				c.measure(m, i)
			}
			if (cause != nil) != c.stuck {
				t.Errorf("got %v", cause)
			}
		})
	}
}

// deaf is a client that delivers nothing, though a record lies there.
type deaf struct{ Client }

func (deaf) Poll(ctx context.Context, _ int) kgo.Fetches {
	<-ctx.Done()
	return kgo.NewErrFetch(ctx.Err())
}
func (deaf) Bounds(context.Context) (map[int32]Bounds, error) {
	return map[int32]Bounds{0: {0, 1, 1}}, nil
}
func (deaf) EpochEnds(context.Context, map[int32]int32) (map[int32]int64, error) {
	return nil, nil
}
func (deaf) Narrow(context.Context, []int32) (map[int32]string, error) {
	return nil, nil
}
func (deaf) Committed() Offsets { return nil }
func (deaf) AllowRebalance()    {}
func (deaf) Close()             {}

// A client that does not deliver what is there is given up: its session ends, and the next one
// reads on.
func TestASessionThatGetsNothingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		session, err := NewAtLeastOnce(memberOf(t, 0).opts, func(e Events) (Client, error) {
			e.Assigned([]int32{0})
			return deaf{}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		start := time.Now()
		_, err = session.Poll(t.Context())
		if err == nil || !strings.Contains(err.Error(),
			"1 records of partition 0, from offset 0, were not delivered") {
			t.Errorf("got %v", err)
		}
		if waited := time.Since(start); waited < undelivered {
			t.Errorf("after %v", waited)
		}
	})
}

// forgetful is a client that delivers its records once; it is looking for the partition's leader,
// and does not hear where to go on, until it has been told so often.
type forgetful struct {
	deaf
	records []*kgo.Record
	unheard int
	told    []int64 // offsets
	blocked bool    // a rebalance, since records were polled
	waited  bool    // it was blocked while a poll waited for as long as it takes
}

func (f *forgetful) Poll(ctx context.Context, n int) kgo.Fetches {
	_, brief := ctx.Deadline()
	f.waited = f.waited || f.blocked && !brief
	if len(f.records) == 0 {
		return f.deaf.Poll(ctx, n)
	}
	topic := kgo.FetchTopic{Topic: "orders", Partitions: []kgo.FetchPartition{
		{Partition: 0, Records: f.records}}}
	f.records, f.blocked = nil, true
	return kgo.Fetches{{Topics: []kgo.FetchTopic{topic}}}
}
func (f *forgetful) Seek(to Offsets) {
	f.told = append(f.told, to[0].Offset)
	if f.unheard--; f.unheard < 0 {
		f.records = []*kgo.Record{{Topic: "orders", Offset: to[0].Offset}}
	}
}
func (f *forgetful) Pause(...int32)  {}
func (f *forgetful) Resume(...int32) {}
func (f *forgetful) AllowRebalance() { f.blocked = false }
func (f *forgetful) Fences(context.Context, []int32) (fence.Found, error) {
	return fence.Found{}, nil
}

// It would be held for ever, and so would a rebalance of the group.
func TestAHeldRecordComesAgainThoughTheClientDidNotHearWhereToGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &forgetful{unheard: 1, records: []*kgo.Record{{Topic: "orders", Offset: 7}}}
		session, err := NewAtLeastOnce(memberOf(t, 0).opts, func(Events) (Client, error) {
			return client, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		session.member.partitions[0] = newPartition(0)
		session.Hold(0, 7, "no topic takes it")
		batch, err := session.Poll(t.Context())
		if err != nil || len(batch.Records) != 1 || batch.Records[0].Offset != 7 {
			t.Fatalf("got %v, %v; the client was told to go on at %v", batch, err, client.told)
		}
		if client.waited {
			t.Error("a rebalance had to wait for records that were withheld")
		}
	})
}

// broken is a client whose fetches fail, and whose group refuses offsets after that.
type broken struct {
	deaf
	fetch, commit error
	answered      func(error)
	polled        bool
}

func (b *broken) Poll(context.Context, int) kgo.Fetches {
	b.polled = true
	return kgo.NewErrFetch(b.fetch)
}
func (b *broken) Commit(_ context.Context, _ Offsets, answered func(error)) {
	b.answered = answered
}
func (b *broken) Flush(context.Context) error { return nil }
func (b *broken) AllowRebalance() {
	if b.polled {
		b.answered(b.commit)
	}
}

// Whoever is told only of the fetch does not know that the offsets of the batch before are missing.
func TestAFailedPollTellsOfRefusedOffsets(t *testing.T) {
	client := &broken{fetch: errors.New("the fetch failed"),
		commit: errors.New("the offsets are refused")}
	session, err := NewAtLeastOnce(memberOf(t, 0).opts, func(Events) (Client, error) {
		return client, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if err := session.Commit(t.Context(), &Batch{}); err != nil {
		t.Fatal(err)
	}
	if _, err := session.Poll(t.Context()); !errors.Is(err, client.fetch) ||
		!errors.Is(err, client.commit) {
		t.Errorf("got %v", err)
	}
}

// Its next owner would begin below what was handled.
func TestAPartitionIsKeptWhileItsLaneWaitsForTheOffsets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &broken{}
		var events Events
		session, err := NewAtLeastOnce(memberOf(t, 0).opts, func(e Events) (Client, error) {
			events = e
			return client, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		events.Assigned([]int32{0})
		if err := session.Commit(t.Context(), &Batch{}); err != nil {
			t.Fatal(err)
		}
		begun, revoked := make(chan error, 1), make(chan struct{})
		go func() { begun <- session.Begin(t.Context(), &Batch{}) }()
		synctest.Wait()
		go func() {
			defer close(revoked)
			events.Revoked([]int32{0})
		}()
		synctest.Wait()
		if len(session.Assignments()) == 0 {
			t.Error("the partition is gone before its offsets are committed")
		}
		client.answered(nil)
		<-revoked
		if err := <-begun; err != nil || len(session.Assignments()) > 0 {
			t.Errorf("%v, has %v", err, session.Assignments())
		}
	})
}
