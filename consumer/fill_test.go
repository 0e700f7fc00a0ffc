package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/fence"
)

// polled is a client that only polls.
type polled struct {
	Client
	poll func(context.Context, int) kgo.Fetches
}

func (p *polled) Poll(ctx context.Context, n int) kgo.Fetches { return p.poll(ctx, n) }

// tenBytes is what one record of fetched takes in memory.
const tenBytes = 10 + recordBytes + headerBytes

// fetched is n records of a partition from an offset, each of ten bytes, as a broker sends them
// whose readable log ends at an offset.
func fetched(partition int32, from, n, end int64) kgo.Fetches {
	p := kgo.FetchPartition{Partition: partition, LastStableOffset: end, HighWatermark: end + 100}
	for i := range n {
		p.Records = append(p.Records, &kgo.Record{
			Topic: "in", Partition: partition, Offset: from + i, Value: []byte("01234"),
			Headers: []kgo.RecordHeader{{Key: "id", Value: []byte("xyz")}},
		})
	}
	return kgo.Fetches{{Topics: []kgo.FetchTopic{{Topic: "in",
		Partitions: []kgo.FetchPartition{p}}}}}
}

// inEpoch sets the leader epoch of all records.
func inEpoch(epoch int32, fetches kgo.Fetches) kgo.Fetches {
	fetches.EachRecord(func(r *kgo.Record) { r.LeaderEpoch = epoch })
	return fetches
}

func TestABatchIsFilledWhileMoreIsKnownToBeThere(t *testing.T) {
	for _, test := range []struct {
		name          string
		records, room int // of a batch: most records, and most records' worth of bytes
		polled        []kgo.Fetches
		waiting       bool // were they in the client before they were polled?
		want          int  // records
		polls         int  // after the first one
	}{
		{"at the end of the log it is not waited for", 100, 1000,
			[]kgo.Fetches{fetched(0, 0, 10, 10)}, false, 10, 0},
		{"until the end of the log", 100, 1000, []kgo.Fetches{fetched(0, 0, 10, 30),
			fetched(0, 10, 10, 30), fetched(0, 20, 10, 30)}, false, 30, 2},
		{"until it has its records", 20, 1000, []kgo.Fetches{fetched(0, 0, 10, 99),
			fetched(0, 10, 10, 99), fetched(0, 20, 10, 99)}, false, 20, 1},
		{"until it has its bytes", 100, 15, []kgo.Fetches{fetched(0, 0, 10, 99),
			fetched(0, 10, 10, 99), fetched(0, 20, 10, 99)}, false, 20, 1},
		{"with what other partitions have", 100, 1000,
			[]kgo.Fetches{fetched(0, 0, 10, 30), fetched(1, 0, 5, 5)}, false, 15, 1},
		{"as far as the broker answers", 100, 1000, []kgo.Fetches{fetched(0, 0, 10, 30)}, false, 10,
			1},
		{"with what came after records that had been waiting", 100, 1000,
			[]kgo.Fetches{fetched(0, 0, 10, 10), fetched(0, 10, 5, 15)}, true, 15, 1},
		{"and with all that was behind that", 100, 1000, []kgo.Fetches{fetched(0, 0, 10, 10),
			fetched(0, 10, 5, 20), fetched(0, 15, 5, 20)}, true, 20, 2},
		{"with what was behind records that had been waiting", 100, 1000,
			[]kgo.Fetches{fetched(0, 0, 10, 20), fetched(0, 10, 10, 20)}, true, 20, 1},
		{"without what may have come if none did", 100, 1000, []kgo.Fetches{fetched(0, 0, 10, 10)},
			true, 10, 1},
		{"without what may have come if it is full", 10, 1000, []kgo.Fetches{fetched(0, 0, 10, 10)},
			true, 10, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := &member{opts: Options{Limit: NewBatchLimit(test.records, test.room*tenBytes,
				time.Minute, nil)}}
			polls := 0
			poll := func(ctx context.Context, most int) kgo.Fetches {
				if polls++; polls < len(test.polled) {
					return test.polled[polls]
				}
				<-ctx.Done()
				return kgo.NewErrFetch(ctx.Err())
			}
			m.client = &polled{poll: poll}
			m.filled = size(test.polled[0])
			got := m.fill(t.Context(), test.polled[0], test.waiting)
			if got.NumRecords() != test.want || polls != test.polls || got.Err() != nil {
				t.Errorf("%d records after %d polls, %v; want %d after %d", got.NumRecords(), polls,
					got.Err(), test.want, test.polls)
			}
		})
	}
}

func TestABatchIsFilledAsLongAsTheBrokerAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		answer  time.Duration // of each fetch of ten records
		records int           // of a full batch
		want    int
		took    time.Duration
	}{
		"fetches that together take longer than one may": {60 * time.Millisecond, 100, 100,
			9 * 60 * time.Millisecond},
		"for a second at the most": {90 * time.Millisecond, 1000, 10 + 11*10, time.Second},
		"one that takes too long":  {110 * time.Millisecond, 100, 10, 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &member{opts: Options{
					Limit: NewBatchLimit(test.records, 1<<20, time.Minute, nil)}}
				next := int64(0)
				poll := func(ctx context.Context, _ int) kgo.Fetches {
					select {
					case <-time.After(test.answer):
						next += 10
						return fetched(0, next, 10, 10_000)
					case <-ctx.Done():
						return kgo.NewErrFetch(ctx.Err())
					}
				}
				start := time.Now()
				m.client = &polled{poll: poll}
				got := m.fill(t.Context(), fetched(0, 0, 10, 10_000), false)
				if took := time.Since(start); got.NumRecords() != test.want || took != test.took ||
					got.Err() != nil {
					t.Errorf("%d records in %v, %v; want %d in %v", got.NumRecords(), took,
						got.Err(), test.want, test.took)
				}
			})
		})
	}
}

func TestErrorsThatAFillMeetsAreKept(t *testing.T) {
	m := &member{opts: Options{Limit: NewBatchLimit(100, 1<<20, time.Minute, nil)}}
	broken := errors.New("broken")
	m.client = &polled{poll: func(context.Context, int) kgo.Fetches {
		return kgo.NewErrFetch(broken)
	}}
	got := m.fill(t.Context(), fetched(0, 0, 10, 30), false)
	if got.NumRecords() != 10 || !errors.Is(got.Err(), broken) {
		t.Errorf("%d records, %v", got.NumRecords(), got.Err())
	}
}

// A client goes back in the log while a batch is filled: the log was cut, or the group took the
// partition and gave it again. Without an ID, a record would be forwarded twice.
func TestARecordThatIsFetchedTwiceIsOnceInABatch(t *testing.T) {
	first := func(epoch int32) kgo.Fetches { return inEpoch(epoch, fetched(0, 5, 5, 99)) }
	again := func(from, n int64, epoch int32) kgo.Fetches {
		return inEpoch(epoch, fetched(0, from, n, 99))
	}
	for _, test := range []struct {
		name    string
		fetches []kgo.Fetches
		want    string // offset/epoch of each record
		next    int64
	}{
		{"and the client goes on", []kgo.Fetches{first(3), again(7, 5, 3)},
			"5/3 6/3 7/3 8/3 9/3 10/3 11/3", 12},
		{"and the client has come no further", []kgo.Fetches{first(3), again(5, 2, 3)},
			"5/3 6/3 7/3 8/3 9/3", 10},
		{"and the log was cut behind it", []kgo.Fetches{first(3), again(7, 1, 3), again(8, 2, 4)},
			"5/3 6/3 7/3 8/3 9/3 8/4 9/4", 10},
		{"but another one with its offset is another one", []kgo.Fetches{first(3), again(5, 2, 4)},
			"5/3 6/3 7/3 8/3 9/3 5/4 6/4", 7},
		{"but without epochs nobody can tell", []kgo.Fetches{first(-1), again(8, 2, -1)},
			"5/-1 6/-1 7/-1 8/-1 9/-1 8/-1 9/-1", 10},
	} {
		t.Run(test.name, func(t *testing.T) {
			batch := NewBatch(slices.Concat(test.fetches...), unfenced, "group", t.Context())
			var got []string
			for _, r := range batch.Records {
				got = append(got, fmt.Sprintf("%d/%d", r.Offset, r.LeaderEpoch))
			}
			if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if next := batch.offsets()[0].Offset; next != test.next {
				t.Errorf("offset %d is committed, want %d", next, test.next)
			}
		})
	}
}

func TestSpansOfABatchOfSeveralFetches(t *testing.T) {
	type span struct {
		partition   int32
		first, next int64
		records     int
	}
	join := func(all ...kgo.Fetches) (joined kgo.Fetches) {
		for _, f := range all {
			joined = append(joined, f...)
		}
		return joined
	}
	for _, test := range []struct {
		name    string
		fetches kgo.Fetches
		want    []span
	}{
		{"one partition goes on", join(fetched(0, 5, 10, 99), fetched(0, 15, 10, 99)),
			[]span{{0, 5, 25, 20}}},
		{"with a gap of removed records", join(fetched(0, 5, 10, 99), fetched(0, 40, 10, 99)),
			[]span{{0, 5, 50, 20}}},
		{"partitions take turns", join(fetched(1, 0, 10, 99), fetched(0, 0, 10, 99),
			fetched(1, 10, 10, 99)), []span{{0, 0, 10, 10}, {1, 0, 20, 20}}},
		{"the log was cut, and the client went back", join(fetched(0, 5, 10, 99),
			inEpoch(1, fetched(0, 8, 10, 99))), []span{{0, 5, 15, 10}, {0, 8, 18, 10}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			batch := NewBatch(test.fetches, unfenced, "group", t.Context())
			var got []span
			for i, s := range batch.Spans {
				n := 0
				for _, r := range batch.Records {
					if int(r.span) == i {
						n++
					}
				}
				got = append(got, span{s.Partition, s.First, s.Next, n})
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(span{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// unfenced is the fence of partitions of which nothing was handled.
func unfenced(int32) (f fence.Fence) { return f }
