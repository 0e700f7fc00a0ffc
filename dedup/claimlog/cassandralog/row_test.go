package cassandralog

import (
	"bytes"
	"testing"
	"time"
)

func FuzzRow(f *testing.F) {
	one := row{mark: 1, after: -2, time: 3, ends: 1 << 60, block: []byte("block")}
	f.Add(one.append(nil))
	f.Add([]byte{})
	f.Add([]byte{rowVersion})
	f.Add(append([]byte{rowVersion + 1}, make([]byte, rowHeaderBytes)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		var r row
		if err := r.parse(data); err != nil {
			return
		}
		if again := r.append(nil); !bytes.Equal(again, data) {
			t.Errorf("%x is read as %+v, and written as %x", data, r, again)
		}
	})
}

func FuzzFounding(f *testing.F) {
	f.Add([]byte(`{"version":1,"id":"6f0e1f0e-0000-4000-8000-000000000001","shards":8}`))
	f.Add([]byte(`{"version":2,"id":"6f0e1f0e-0000-4000-8000-000000000001","shards":8}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if found, id, err := parseFounding(data); err == nil && (found.Shards < 1 ||
			found.Version != foundingVersion || id.String() == "") {
			t.Errorf("%q is taken for %+v", data, found)
		}
	})
}

func TestPointersAreReadAsTheyWereWritten(t *testing.T) {
	slice, opener, err := parsePointer(appendPointer(nil, 1<<40, -7))
	if err != nil || slice != 1<<40 || opener != -7 {
		t.Error(slice, opener, err)
	}
	if _, _, err := parsePointer([]byte("seven")); err == nil {
		t.Error("anything is taken for an end")
	}
}

func TestAClockFarFromTheNodesIsRefused(t *testing.T) {
	node := time.UnixMilli(1_700_000_000_000)
	for _, c := range []struct {
		own    time.Time
		within time.Duration
		ok     bool
	}{
		{node, 0, true},
		{node.Add(clockTolerance), 0, true},
		{node.Add(clockTolerance + time.Second), time.Minute, false},
		{node.Add(-clockTolerance), 0, true},
		{node.Add(-clockTolerance - time.Second), 0, false},
		// the node may have looked at its clock a minute after this process
		{node.Add(-clockTolerance - time.Second), time.Minute, true},
	} {
		if err := compareClocks(c.own, node, c.within); (err == nil) != c.ok {
			t.Errorf("%v, within %v: %v", c.own.Sub(node), c.within, err)
		}
	}
}

// The time of the log never goes back, and no block ends before the one in front of it.
func TestABlockIsNeverBeforeTheOneInFront(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	s := &shard{at: 7, last: row{seq: 6, mark: 66, time: 1_000_500, ends: 1_100_000}}
	rows := s.rows([]*pending{{mark: 1, keep: time.Second}, {mark: 2, keep: time.Hour},
		{mark: 3, keep: time.Minute}}, now)
	front := s.last
	for _, r := range rows {
		if r.seq != front.seq+1 || r.after != front.mark || r.time < front.time ||
			r.ends < front.ends {
			t.Errorf("behind %+v comes %+v", front, r)
		}
		front = r
	}
	if rows[0].ends != 1_100_000 || rows[2].ends != s.last.time+time.Hour.Milliseconds() {
		t.Errorf("got %+v", rows)
	}
}
