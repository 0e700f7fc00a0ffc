package forwarder

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/twmb/franz-go/pkg/kgo"
)

// anyRecord may have headers that look like those of kdedup, as what somebody has copied back to
// the input by hand.
func anyRecord(random *rand.Rand) *kgo.Record {
	r := &kgo.Record{Topic: "orders", Partition: random.Int32N(100), Offset: random.Int64N(1 << 40),
		Timestamp: time.UnixMilli(random.Int64N(1 << 42)), LeaderEpoch: -1}
	for _, field := range []*[]byte{&r.Key, &r.Value} {
		if random.IntN(3) > 0 {
			*field = fmt.Appendf(nil, "%x", random.Uint64())
		}
	}
	names := []string{"trace", HeaderReason, HeaderSourceTopic, HeaderVerdict, HeaderKey,
		HeaderSourceSHA256, HeaderClaimedAt}
	for range random.IntN(8) {
		r.Headers = append(r.Headers, header(names[random.IntN(len(names))], "x"))
	}
	for range random.IntN(3) {
		r.Headers = append(r.Headers, header(HeaderReason, "conflict"))
		r.Headers = append(r.Headers, sourceHeaders(r)...)
	}
	return r
}

func TestALetterGivesBackTheRecordByteForByte(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	topics := &Topics{Output: "orders.clean", Duplicates: "orders.twice", DeadLetter: "orders.dlq"}
	for range 1000 {
		r := anyRecord(random)
		if random.IntN(2) == 0 {
			r.Headers = append(r.Headers, header(HeaderRedrives, "2"))
		}
		want := Letter{Record: r}
		if lastIndex(r.Headers, HeaderRedrives) >= 0 {
			want.Redrives = 2
		}
		f := form{key: r.Key == nil && random.IntN(2) == 0, now: random.IntN(2) == 0}
		var sent kgo.Record
		note := Note{Verdict: "conflict", Owned: random.IntN(2) == 0,
			ClaimedAt: time.UnixMilli(random.Int64N(1 << 42)).UTC()}
		if note.Owned {
			note.Owner.Partition, note.Owner.Offset = 2, random.Int64N(1<<40)
			want.ClaimedAt, want.Owner = note.ClaimedAt, fmt.Sprintf("[2]@%d", note.Owner.Offset)
			if random.IntN(2) == 0 {
				note.Differs = "the key, and the value in total"
				want.Differs = note.Differs
			}
		}
		if random.IntN(2) == 0 {
			want.Reason = "missing_id_absent"
			var err error
			if sent, _, err = topics.deadLetter(r, want.Reason, note, f); err != nil {
				t.Fatal(err)
			}
		} else {
			want.Verdict = note.Verdict
			o := topics.NewOutgoing(1)
			o.Duplicate(r, note)
			sent = o.records[0]
			f.apply(&sent, r)
		}
		got, err := Open(&sent)
		if err != nil {
			t.Fatalf("%v of %+v", err, sent)
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(kgo.Record{}, kgo.RecordAttrs{}),
			cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
		if (r.Key == nil) != (got.Record.Key == nil) ||
			(r.Value == nil) != (got.Record.Value == nil) {
			t.Fatalf("null is not null: %+v of %+v", got.Record, r)
		}
	}
}

func TestAStubIsTold(t *testing.T) {
	topics := &Topics{DeadLetter: "orders.dlq", MaxBytes: map[string]int{"orders.dlq": 1500}}
	r := &kgo.Record{Topic: "orders", Key: []byte("a"), Value: make([]byte, 2000),
		Headers: []kgo.RecordHeader{header("trace", "x")}}
	sent, _, err := topics.deadLetter(r, ReasonTooLarge, Note{}, form{})
	if err != nil {
		t.Fatal(err)
	}
	if l, err := Open(&sent); err != nil || !l.Stub || l.Reason != ReasonTooLarge {
		t.Errorf("%+v, %v", l, err)
	}
}

func TestATimeThatNoHeaderCarriesIsNotKept(t *testing.T) {
	topics := &Topics{DeadLetter: "orders.dlq"}
	r := &kgo.Record{Topic: "orders", Timestamp: time.UnixMilli(1 << 53)}
	sent, _, err := topics.deadLetter(r, ReasonTimestamp, Note{}, form{now: true})
	if err != nil {
		t.Fatal(err)
	}
	if l, err := Open(&sent); err != nil || Keeps(l.Record.Timestamp) {
		t.Errorf("%+v, %v", l, err)
	}
}

func TestWhatIsNoLetterIsNotOpened(t *testing.T) {
	source := sourceHeaders(&kgo.Record{Topic: "orders"})
	dead := append([]kgo.RecordHeader{header(HeaderReason, "conflict")}, source...)
	for name, headers := range map[string][]kgo.RecordHeader{
		"no headers":           nil,
		"a place and no word":  source,
		"a reason and no more": {header(HeaderReason, "conflict")},
		"half a place":         dead[:3],
		"something behind":     append(dead[:len(dead):len(dead)], header("trace", "x")),
		"a negative place": {header(HeaderReason, "x"), header(HeaderSourceTopic, "orders"),
			header(HeaderSourcePartition, "-1"), header(HeaderSourceOffset, "1"),
			header(HeaderSourceTime, "2026-01-01T00:00:00.000Z")},
	} {
		if _, err := Open(&kgo.Record{Headers: headers}); !errors.Is(err, ErrNoLetter) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheCountOfRedrivesGrows(t *testing.T) {
	r := &kgo.Record{Topic: "orders", Headers: []kgo.RecordHeader{header("trace", "x")}}
	for want := 1; want < 4; want++ {
		l := Letter{Record: r, Redrives: want - 1}
		r = l.Redriven()
		if got := redrives(r.Headers); got != want || len(r.Headers) != 2 {
			t.Fatalf("%d, want %d: %v", got, want, r.Headers)
		}
	}
	for _, text := range []string{"many", "", "-1", "99999999999"} {
		if got := redrives([]kgo.RecordHeader{header(HeaderRedrives, text)}); got < 1000 {
			t.Errorf("%q counts as %d", text, got)
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(HeaderReason, "x", HeaderSourceTopic, "orders", HeaderVerdict, "1")
	f.Fuzz(func(t *testing.T, a, b, c, d, e, g string) {
		names := []string{a, HeaderReason, HeaderSourceTopic, HeaderSourcePartition,
			HeaderSourceOffset, HeaderSourceTime, c, e}
		values := []string{b, d, g, d, g, b, d, g}
		r := &kgo.Record{}
		for i := range names {
			r.Headers = append(r.Headers, header(names[i], values[i]))
		}
		l, err := Open(r)
		if err == nil && len(l.Record.Headers) > len(r.Headers)-sourceLength {
			t.Errorf("kdedup's own headers are left: %v", l.Record.Headers)
		}
	})
}
