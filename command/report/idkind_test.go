package report

import (
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
)

var now = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

func TestKindsOfIDsAreRecognised(t *testing.T) {
	binary, err := hex.DecodeString("0190d0b8e6a77c3e9d3c1f2a3b4c5d6e")
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{
		"f81d4fae-7dec-11d0-a765-00a0c91e6bf6": KindUUIDv1,
		"0a12c11d-71fa-4a2d-a02e-350ec8fc9e34": KindUUIDv4,
		"0A12C11D-71FA-4A2D-A02E-350EC8FC9E34": KindUUIDv4,
		"1ec9414c-232a-6b00-b3c8-9e6bdeced846": KindUUIDv6,
		"0190d0b8-e6a7-7c3e-9d3c-1f2a3b4c5d6e": KindUUIDv7,
		"0190d0b8e6a77c3e9d3c1f2a3b4c5d6e":     KindUUIDv7,
		string(binary):                         KindUUIDv7,
		// version 7, in a far future
		"ffffffff-e6a7-7c3e-9d3c-1f2a3b4c5d6e": KindUUID,
		"00000000-0000-0000-0000-000000000000": KindUUID,
		"01J38BHSN7FGZ9TF0Z58XMRQBE":           KindULID,
		"01j38bhsn7fgz9tf0z58xmrqbe":           KindULID,
		"81J38BHSN7FGZ9TF0Z58XMRQBE":           KindOther, // over 128 bits
		"2ZLMk6MHxY1UTcCp8jjy5fbFWBD":          KindKSUID,
		"66ab29bf1c9d440000000000":             KindObjectID,
		"1541815603606036480":                  KindSnowflake,
		"42":                                   KindNumber,
		"00000000000000000000000000000042":     KindNumber,
		"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08": KindHash,
		"order/4711":       KindOther,
		"sixteen letters!": KindOther,
	} {
		if got := KindOf([]byte(id), now); got != want {
			t.Errorf("%q is taken for %s, want %s", id, got, want)
		}
	}
}

// An ID may be any bytes.
func FuzzKindOf(f *testing.F) {
	for _, seed := range []string{"", "0190d0b8-e6a7-7c3e-9d3c-1f2a3b4c5d6e",
		"01J38BHSN7FGZ9TF0Z58XMRQBE", "2ZLMk6MHxY1UTcCp8jjy5fbFWBD", "zzzzzzzzzzzzzzzzzzzzzzzzzzz",
		"1541815603606036480"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, id []byte) {
		kind := KindOf(id, now)
		if kindNames[kind] == "" {
			t.Fatalf("%q has the kind %q, which has no name", id, kind)
		}
		if (kind == KindUUIDv7 || kind == KindULID || kind == KindKSUID || kind == KindObjectID) &&
			KindOf(id, time.Unix(0, 0)) == kind {
			t.Fatalf("%q is a %s also when its time was still to come", id, kind)
		}
	})
}

func FuzzEntry(f *testing.F) {
	f.Add("id", int64(-5), int32(3), int64(9))
	f.Fuzz(func(t *testing.T, id string, at int64, partition int32, offset int64) {
		if len(id) > messageid.MaxBytes || partition < 0 || offset < 0 {
			t.Skip()
		}
		o := occurrence{at: at, partition: partition, offset: offset,
			fingerprint: dedup.Fingerprint{1, 2}, header: 7}
		e := entry(appendEntry(nil, dedup.ID(id), o))
		if string(e.id()) != id || e.occurrence() != o {
			t.Fatalf("%q, %+v came back as %q, %+v", id, o, e.id(), e.occurrence())
		}
		later := o
		if later.at++; later.at > o.at &&
			compareEntries(e, appendEntry(nil, dedup.ID(id), later)) >= 0 {
			t.Fatalf("%+v does not sort before %+v", o, later)
		}
	})
}

// Forms do not tell the order: it is measured.
func TestTheOrderOfIDsIsMeasured(t *testing.T) {
	for name, c := range map[string]struct {
		id   func(i int) string
		want string
	}{
		"counter with zeros": {func(i int) string { return fmt.Sprintf("order-%08d", i) },
			"yes"},
		"snowflake": {func(i int) string {
			return fmt.Sprint(1541815603606036480 + i<<22)
		}, "yes"},
		"random": {func(i int) string {
			return fmt.Sprintf("%016x", uint64(i)*0x9e3779b97f4a7c15)
		}, "no"},
		"a counter per producer": {func(i int) string { return fmt.Sprintf("p%d/%08d", i%7, i) },
			"no"},
		"a counter without zeros": {func(i int) string { return fmt.Sprint(i) }, "no"},
	} {
		var in topic
		for i := range 4000 {
			in.put(int32(i%4), time.Duration(i)*time.Second, c.id(i), "v")
		}
		r := in.build(t, nil)
		if got := (view{Report: r}).Ordered(); got != c.want {
			t.Errorf("%s: ordered by time: %s (correlation %v), want %s", name, got,
				*r.IDs.Correlation, c.want)
		}
	}
}

func TestTheClockIsThatOfTheLog(t *testing.T) {
	for _, c := range []struct {
		name  string
		stamp []time.Duration // of the records of a partition
		want  []time.Duration
	}{
		{"in order", []time.Duration{1, 2, 3}, []time.Duration{1, 2, 3}},
		{"a mirror produces old records again", []time.Duration{1, 50, 2, 51},
			[]time.Duration{1, 50, 50, 51}},
		{"a timestamp in the future", []time.Duration{1, 9000, 2, 3}, []time.Duration{1, 1, 2, 3}},
	} {
		clock := newClock(start.Add(100 * time.Hour))
		for i, stamp := range c.stamp {
			got := clock.read(&kgo.Record{Timestamp: start.Add(stamp * time.Hour)})
			if want := start.Add(c.want[i] * time.Hour).UnixMilli(); got != want {
				t.Errorf("%s: record %d came at %v, want %v", c.name, i, time.UnixMilli(got),
					time.UnixMilli(want))
			}
		}
	}
}

func TestBarsStayFew(t *testing.T) {
	s := newSeries()
	for i := range int64(10_000) {
		s.add(start.UnixMilli()+i*37_000, 1, i%2)
		if n := s.high - s.low + 1; n > maxBars {
			t.Fatalf("%d bars", n)
		}
	}
	var records, copies int64
	for _, b := range s.bars {
		records, copies = records+b.records, copies+b.copies
	}
	if records != 10_000 || copies != 5_000 {
		t.Errorf("%d records and %d copies in the bars", records, copies)
	}
	for i := 1; i < len(barWidths); i++ {
		if barWidths[i]%barWidths[i-1] != 0 {
			t.Errorf("bars of %d ms cannot be joined of those of %d ms", barWidths[i],
				barWidths[i-1])
		}
	}
}
