package fence

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
)

var (
	orders, other = [16]byte{0: 0xab, 15: 1}, [16]byte{2}
	morning       = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	noon          = morning.Add(3 * time.Hour)
	evening       = noon.Add(6 * time.Hour)
)

// fenceOf has a step every two arguments.
func fenceOf(topicID [16]byte, epoch int32, steps ...step) Fence {
	return Fence{TopicID: topicID, LeaderEpoch: epoch, steps: steps}
}

func TestFenceCoversOnlyRecordsThatWereHandled(t *testing.T) {
	fence := fenceOf(orders, 5, step{100, noon})
	cases := []struct {
		name    string
		fence   Fence
		topicID [16]byte
		offset  int64
		epoch   int32
		want    bool
	}{
		{"below, same epoch", fence, orders, 99, 5, true},
		{"below, earlier epoch", fence, orders, 0, 0, true},
		{"at the fence", fence, orders, 100, 5, false},
		{"an offset that was used again after an unclean election", fence, orders, 99, 6, false},
		{"a recreated topic", fence, other, 99, 5, false},
		{"a record without an epoch", fence, orders, 99, -1, false},
		{"a broker that does not tell the topic's ID", fence, [16]byte{}, 99, 5, true},
		{"a fence from before brokers told IDs", fenceOf([16]byte{}, 5, step{100, noon}), orders,
			99, 5, true},
		{"no fence", Fence{}, [16]byte{}, 0, 0, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := c.fence.Covers(c.topicID, c.offset, c.epoch); got != c.want {
				t.Errorf("got %v", got)
			}
			want := time.Time{}
			if c.want {
				want = noon
			}
			if got := c.fence.Settled(c.topicID, c.offset, c.epoch); !got.Equal(want) {
				t.Errorf("settles claims up to %v", got)
			}
		})
	}
}

func TestFencesAdvance(t *testing.T) {
	at := fenceOf(orders, 5, step{100, noon})
	cases := []struct {
		name   string
		before Fence
		span   Span
		want   Fence
	}{
		{"the first", Fence{}, Span{TopicID: orders, Next: 10, LeaderEpoch: 5, Claimed: noon},
			fenceOf(orders, 5, step{10, noon})},
		{"the first, on brokers without topic IDs and epochs", Fence{},
			Span{Next: 10, LeaderEpoch: -1, Claimed: noon},
			fenceOf([16]byte{}, -1, step{10, noon})},
		{"forward", at, Span{TopicID: orders, Next: 150, LeaderEpoch: 6, Claimed: evening},
			fenceOf(orders, 6, step{150, evening})},
		{"forward over copies only", at, Span{TopicID: orders, Next: 150, LeaderEpoch: 5},
			fenceOf(orders, 5, step{150, noon})},
		{"forward with older claims", at,
			Span{TopicID: orders, Next: 150, LeaderEpoch: 5, Claimed: morning},
			fenceOf(orders, 5, step{150, noon})},
		{"not back, while what was set back is replayed", at,
			Span{TopicID: orders, Next: 50, LeaderEpoch: 5, Claimed: morning}, at},
		{"not back, over copies only", at, Span{TopicID: orders, Next: 50, LeaderEpoch: 5}, at},
		{"a step, while what was set back claims again", at,
			Span{TopicID: orders, Next: 50, LeaderEpoch: 5, Claimed: evening},
			fenceOf(orders, 5, step{50, evening}, step{100, noon})},
		{"the step moves on", fenceOf(orders, 5, step{50, evening}, step{100, noon}),
			Span{TopicID: orders, Next: 70, LeaderEpoch: 5, Claimed: evening.Add(1)},
			fenceOf(orders, 5, step{70, evening.Add(1)}, step{100, noon})},
		{"the step is left behind", fenceOf(orders, 5, step{50, evening}, step{100, noon}),
			Span{TopicID: orders, Next: 120, LeaderEpoch: 5, Claimed: morning},
			fenceOf(orders, 5, step{120, evening})},
		{"set back once more", fenceOf(orders, 5, step{50, noon}, step{100, morning}),
			Span{TopicID: orders, Next: 20, LeaderEpoch: 5, Claimed: evening},
			fenceOf(orders, 5, step{20, evening}, step{50, noon}, step{100, morning})},
		{"an unclean election cut the log", at,
			Span{TopicID: orders, Next: 90, LeaderEpoch: 6, Claimed: morning},
			fenceOf(orders, 6, step{90, noon}).after(cut{step{100, noon}, 5, unknown})},
		{"it did while what was set back was read", fenceOf(orders, 5, step{50, evening},
			step{100, noon}), Span{TopicID: orders, Next: 90, LeaderEpoch: 6, Claimed: morning},
			fenceOf(orders, 6, step{50, evening}, step{90, noon}).after(
				cut{step{100, evening}, 5, unknown})},
		{"it cut what was set back", fenceOf(orders, 5, step{50, evening}, step{100, noon}),
			Span{TopicID: orders, Next: 40, LeaderEpoch: 6, Claimed: morning},
			fenceOf(orders, 6, step{40, evening}).after(cut{step{100, evening}, 5, unknown})},
		{"it does once more",
			fenceOf(orders, 6, step{90, noon}).after(cut{step{100, noon}, 5, unknown}),
			Span{TopicID: orders, Next: 80, LeaderEpoch: 7, Claimed: evening},
			fenceOf(orders, 7, step{80, evening}).after(cut{step{90, noon}, 6, unknown},
				cut{step{100, noon}, 5, unknown})},
		{"the log is as long again", fenceOf(orders, 6, step{90, noon}).after(
			cut{step{100, noon}, 5, unknown}), Span{TopicID: orders, Next: 100, LeaderEpoch: 6},
			fenceOf(orders, 6, step{100, noon})},
		{"brokers begin to tell the topic's ID", fenceOf([16]byte{}, 5, step{100, noon}),
			Span{TopicID: orders, Next: 150, LeaderEpoch: 5, Claimed: evening},
			fenceOf(orders, 5, step{150, evening})},
		{"a broker that does not tell it", at, Span{Next: 150, LeaderEpoch: 5, Claimed: evening},
			fenceOf(orders, 5, step{150, evening})},
		{"a recreated topic", at, Span{TopicID: other, Next: 90, LeaderEpoch: 0, Claimed: morning},
			fenceOf(other, 0, step{90, morning})},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(
				c.want, c.before.Advance(c.span), cmp.AllowUnexported(Fence{}, step{}, cut{}),
			); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// after is the fence of a log that was cut before.
func (f Fence) after(cuts ...cut) Fence {
	f.cuts = cuts
	return f
}

func TestWhatWasCutOffIsKnownToBeHandled(t *testing.T) {
	fence := fenceOf(orders, 6, step{90, noon}).after(cut{step{100, morning}, 5, unknown})
	for _, c := range []struct {
		offset  int64
		epoch   int32
		settled time.Time // zero: it was not handled
	}{
		{89, 6, noon}, {89, 5, noon}, {90, 5, morning}, {99, 5, morning}, {90, 6, time.Time{}},
		{99, 6, time.Time{}}, {100, 5, time.Time{}},
	} {
		if got := fence.Covers(orders, c.offset, c.epoch); got == c.settled.IsZero() {
			t.Errorf("%d of epoch %d: covered: %v", c.offset, c.epoch, got)
		}
		if got := fence.Settled(orders, c.offset, c.epoch); !got.Equal(c.settled) {
			t.Errorf("%d of epoch %d: settled up to %v", c.offset, c.epoch, got)
		}
	}
}

// A record behind the place where the log was cut was handled, also where what came in its place is
// missing: compacted away, or a marker.
func TestWhatIsMissingFromTheLogAsItIsWasHandledOfTheLogBefore(t *testing.T) {
	before := fenceOf(orders, 5, step{100, noon})
	before.missing, before.until = Missing{{40, 42}, {85, 90}}, evening
	cut := before.Cut(80)
	if cut.Next() != 80 || !cut.Covers(orders, 79, 5) || cut.Covers(orders, 41, 5) ||
		!cut.Covers(orders, 99, 5) || cut.Covers(orders, 80, 6) {
		t.Errorf("the fence of a log that was cut at 80: %+v", cut)
	}
	span := Span{TopicID: orders, Next: 150, LeaderEpoch: 6, Now: noon,
		Missing: Missing{{81, 82}, {120, 130}}, Until: evening}
	after := cut.Advance(span)
	for _, c := range []struct {
		offset  int64
		epoch   int32
		handled bool
	}{
		{41, 5, false}, {79, 5, true}, {81, 5, true}, {81, 6, false}, {82, 6, true},
		{99, 5, true}, {125, 6, false}, {149, 6, true}, {150, 6, false},
	} {
		parsed, err := Parse(Record("fences", "orders", 0, after))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []Fence{after, parsed} {
			if got := f.Covers(orders, c.offset, c.epoch); got != c.handled {
				t.Errorf("%d of epoch %d: handled: %v", c.offset, c.epoch, got)
			}
		}
	}
	span.Next, span.Missing, span.Now = 160, nil, evening.Add(time.Second)
	if after = after.Advance(span); after.cuts != nil {
		t.Errorf("nothing is missing, and the log is as long again: %+v", after)
	}
}

// With at_least_once it may write its fence when others have handled what came in the place of its
// records.
func TestAMemberThatWasGivenUpTellsOfTheLogBefore(t *testing.T) {
	now, before := fenceOf(orders, 7, step{60, evening}), fenceOf(orders, 5, step{100, noon})
	got := now.Merge(before)
	want := fenceOf(orders, 7, step{60, evening}).after(cut{step{100, noon}, 5, unknown})
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Fence{}, step{}, cut{})); diff != "" {
		t.Error(diff)
	}
	if now.TopicID = [16]byte{}; now.Merge(before).Next() != 100 {
		t.Error("of a topic without an ID it is not known whether it was made again")
	}
}

// A batch that was given back is cut differently the next time. Records behind what is committed
// own claims that are as young as those below.
func TestOnlyWhatWasHandledAgainIsSettledAgain(t *testing.T) {
	fence := fenceOf(orders, 5, step{50, evening}, step{100, noon})
	for offset, want := range map[int64]time.Time{0: evening, 49: evening, 50: noon, 99: noon,
		100: {}} {
		if got := fence.Settled(orders, offset, 5); !got.Equal(want) {
			t.Errorf("offset %d: settles claims up to %v, want %v", offset, got, want)
		}
	}
}

func TestFenceRecordsRoundTrip(t *testing.T) {
	fence := fenceOf(orders, 7, step{5, noon.Add(time.Millisecond)}, step{1 << 60, noon}).after(
		cut{step{1 << 61, noon}, 6, unknown})
	r := Record("fences", "orders", 3, fence)
	if r.Topic != "fences" || r.Partition != 3 || string(r.Key) != "orders" {
		t.Errorf("got %+v", r)
	}
	const want = `{"topic_id":"ab000000000000000000000000000001","next_offset":1152921504606846976,"leader_epoch":7,` +
		`"claimed_until":"2026-11-21T12:00:00Z",` +
		`"again":[{"next_offset":5,"claimed_until":"2026-11-21T12:00:00.001Z"}],` +
		`"cut":[{"next_offset":2305843009213693952,"leader_epoch":6,` +
		`"claimed_until":"2026-11-21T12:00:00Z"}]}`
	if string(r.Value) != want {
		t.Errorf("got %s", r.Value)
	}
	got, err := Parse(r)
	if diff := cmp.Diff(fence, got, cmp.AllowUnexported(Fence{}, step{}, cut{})); err != nil ||
		diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestBrokenFencesNameTheirPlace(t *testing.T) {
	for value, want := range map[string]string{
		`{`:                                 "fence f[2]@9: unexpected end of JSON input",
		`{"topic_id":"00","next_offset":1}`: `fence f[2]@9: topic_id "00" is not 16 bytes in hex`,
		`{"topic_id":"zz000000000000000000000000000000","next_offset":1}`: `fence f[2]@9: topic_id "zz000000000000000000000000000000" is not 16 bytes in hex`,
		`{"topic_id":"0000000000000000000000000000000000","x":1}`:         `fence f[2]@9: topic_id "0000000000000000000000000000000000" is not 16 bytes in hex`,
	} {
		_, err := Parse(&kgo.Record{Topic: "f", Partition: 2, Offset: 9, Value: []byte(value)})
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func FuzzParseFence(f *testing.F) {
	f.Add(Record("f", "t", 0, fenceOf(orders, 1, step{1, evening}, step{2, noon},
		step{3, time.Time{}})).Value)
	f.Fuzz(func(t *testing.T, value []byte) {
		fence, err := Parse(&kgo.Record{Value: value})
		if err != nil {
			return
		}
		again, err := Parse(Record("f", "t", 0, fence))
		diff := cmp.Diff(fence, again, cmp.AllowUnexported(Fence{}, step{}, cut{}))
		if err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	})
}
