package chaos_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/forwarder"
)

// sample is three records with two IDs: a copy of "x" is on another partition than the original.
func sample() (x, copyOfX, y *kgo.Record) {
	record := func(id, attempt string, partition int32, offset int64) *kgo.Record {
		return &kgo.Record{
			Partition: partition, Offset: offset, Value: []byte("value of " + id),
			Headers: []kgo.RecordHeader{{Key: idHeader, Value: []byte(id)},
				{Key: "attempt", Value: []byte(attempt)}},
		}
	}
	return record("x", "1", 0, 0), record("x", "2", 1, 0), record("y", "3", 0, 1)
}

func topicOf(records ...*kgo.Record) *contents {
	c := newContents()
	for i, r := range records {
		placed := *r
		if placed.Topic == "" {
			placed.Offset = int64(i)
		}
		c.add(&placed)
	}
	return c
}

// drop is the record on the duplicates topic.
func drop(r *kgo.Record, offset string) *kgo.Record {
	dropped := *r
	dropped.Headers = append(r.Headers[:2:2],
		kgo.RecordHeader{Key: forwarder.HeaderVerdict, Value: []byte("duplicate")},
		kgo.RecordHeader{Key: forwarder.HeaderSourcePartition,
			Value: []byte{'0' + byte(r.Partition)}},
		kgo.RecordHeader{Key: forwarder.HeaderSourceOffset, Value: []byte(offset)})
	return &dropped
}

func TestTheCheckSeesWhatIsWrong(t *testing.T) {
	x, copyOfX, y := sample()
	for _, r := range []*kgo.Record{x, copyOfX, y} {
		r.Topic = "in" // keeps its offset
	}
	changed := *y
	changed.Value = []byte("else")
	moved := *y
	moved.Partition = 1
	cases := []struct {
		name           string
		clean, dropped []*kgo.Record
		want           map[string]int
		once, least    bool // broken with exactly_once, at_least_once
	}{
		{"all is well", []*kgo.Record{x, y}, []*kgo.Record{drop(copyOfX, "0")}, map[string]int{},
			false, false},
		{"the copy came first", []*kgo.Record{y, copyOfX}, []*kgo.Record{drop(x, "0")},
			map[string]int{}, false, false},
		{"lost", []*kgo.Record{x}, []*kgo.Record{drop(copyOfX, "0")},
			map[string]int{"lost": 1, "unaccounted": 1}, true, true},
		{"lost for its copy", []*kgo.Record{y}, []*kgo.Record{drop(x, "0"), drop(copyOfX, "0")},
			map[string]int{"lost": 1}, true, true},
		{"doubled", []*kgo.Record{x, y, copyOfX}, nil, map[string]int{"doubled": 1}, true, true},
		{"repeated", []*kgo.Record{x, y, x}, []*kgo.Record{drop(copyOfX, "0")},
			map[string]int{"repeated": 1, "twice": 1}, true, false},
		{"dropped twice", []*kgo.Record{x, y}, []*kgo.Record{drop(copyOfX, "0"),
			drop(copyOfX, "0")}, map[string]int{"twice": 1}, true, false},
		{"a copy vanished", []*kgo.Record{x, y}, nil, map[string]int{"unaccounted": 1}, true, true},
		{"out of order", []*kgo.Record{y, x}, []*kgo.Record{drop(copyOfX, "0")},
			map[string]int{"disordered": 1}, true, true},
		{"changed", []*kgo.Record{x, &changed}, []*kgo.Record{drop(copyOfX, "0")},
			map[string]int{"changed": 1, "unaccounted": 1}, true, true},
		{"moved", []*kgo.Record{x, &moved}, []*kgo.Record{drop(copyOfX, "0")},
			map[string]int{"changed": 1, "unaccounted": 1}, true, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			v := compare(topicOf(x, copyOfX, y), topicOf(c.clean...), topicOf(c.dropped...))
			got := map[string]int{
				"lost": len(v.lost), "doubled": len(v.doubled), "repeated": len(v.repeated),
				"unaccounted": len(v.unaccounted),
				"twice":       len(v.twice), "changed": len(v.changed),
				"disordered": len(v.disordered),
			}
			for what, n := range got {
				if n == 0 {
					delete(got, what)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if once, least := v.broken(exactlyOnce), v.broken(atLeastOnce); once != c.once ||
				least != c.least {
				t.Errorf("broken: %v with exactly_once, %v with at_least_once; want %v, %v", once,
					least, c.once, c.least)
			}
		})
	}
}
