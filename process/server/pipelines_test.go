package server

import (
	"fmt"
	"math"
	"testing"
	"time"
)

func TestAPipelineIsAsBadAsItsWorstLane(t *testing.T) {
	held := []Partition{{Held: "held at offset 7"}}
	for _, c := range []struct {
		lanes      []string
		partitions []Partition
		want       string
	}{
		{nil, nil, "joining"},
		{[]string{LaneRunning, LaneRunning}, nil, "running"},
		{[]string{LaneRunning, LaneJoining}, nil, "joining"},
		{[]string{LaneRunning, LaneJoining}, held, "held"},
		{[]string{LaneBlocked, LaneRunning}, held, "blocked"},
		{[]string{LaneBlocked, LaneFailing}, nil, "failing"},
		{[]string{LaneFailing, LaneStopped}, held, "stopped"},
	} {
		p := Pipeline{Partitions: c.partitions}
		for _, state := range c.lanes {
			p.Lanes = append(p.Lanes, Lane{State: state})
		}
		if got := stateOf(p); got != c.want {
			t.Errorf("%v, %d held: %s, want %s", c.lanes, len(c.partitions), got, c.want)
		}
	}
}

// growing is a source of one pipeline whose counters a test sets.
type growing struct {
	Source
	pipeline Pipeline
	facts    []Fact
}

func (g *growing) Snapshot() Snapshot {
	return Snapshot{Pipelines: []Pipeline{g.pipeline}, Store: Store{Facts: g.facts}}
}

func (g *growing) count(first, copies, conflicts, missing, refused float64) {
	g.pipeline.Outcomes = []Count{{"forwarded", first}, {"duplicate", copies},
		{"conflict", conflicts}, {"dead_lettered", missing + refused}}
	g.pipeline.Verdicts = []Count{{"first", first + refused}, {"duplicate", copies},
		{"conflict", conflicts}, {"missing", missing}}
	g.pipeline.Undeliverable = refused
}

// starting has a pipeline from its second look on, as a process that waits for its servers, and
// loses it for a look, as in a reload.
type starting struct {
	growing
	hidden bool
}

func (s *starting) Snapshot() Snapshot {
	if s.hidden {
		return Snapshot{}
	}
	return s.growing.Snapshot()
}

// A backlog is through before the second look.
func TestWhatAPipelineDoesBeforeItIsFirstSeenCounts(t *testing.T) {
	source := &starting{growing: growing{pipeline: Pipeline{Input: "orders"}}, hidden: true}
	s := newSampler(Options{Source: source}, &prober{}, Cleaner(nil))
	s.sample(noon)
	source.hidden = false
	source.count(1000, 250, 10, 10, 10)
	s.sample(noon.Add(2 * time.Second))
	seen := func() pipelineStatus { return s.latest.Load().Pipelines[0] }
	if got := seen(); got.Duplicates.Share == nil || got.Problems.Count != 30 {
		t.Fatalf("share %v, problems %+v", got.Duplicates.Share, got.Problems)
	}
	source.hidden = true
	s.sample(noon.Add(4 * time.Second))
	source.hidden = false
	s.sample(noon.Add(6 * time.Second))
	if got := seen(); got.Duplicates.Share == nil || got.Problems.Count != 30 {
		t.Errorf("after a reload: share %v, problems %+v", got.Duplicates.Share, got.Problems)
	}
	source.count(10, 5, 1, 1, 1) // its topic was made again, and its counters
	s.sample(noon.Add(8 * time.Second))
	if got := seen(); got.Problems.Count < 3 {
		t.Errorf("after counters began again: %+v", got.Problems)
	}
}

func TestSharesAndProblemsAreOfFiveMinutes(t *testing.T) {
	source := &growing{pipeline: Pipeline{Input: "orders"}}
	s := newSampler(Options{Source: source}, &prober{}, Cleaner(nil))
	at := noon
	sample := func() pipelineStatus {
		s.sample(at)
		at = at.Add(2 * time.Second)
		return s.latest.Load().Pipelines[0]
	}
	source.count(1000, 1000, 10, 10, 10)
	if got := sample(); got.Duplicates.Share != nil || got.Problems.Count != 0 {
		t.Errorf("what was before the first look counts: %+v, %+v", got.Duplicates, got.Problems)
	}
	source.count(1070, 1020, 15, 13, 12)
	source.pipeline.Partitions = []Partition{{Partition: 3, Held: "held at offset 7"}}
	want := problems{Count: 11, Missing: 3, Conflicts: 5, Undeliverable: 2, Held: 1}
	got := sample()
	if got.Problems != want || math.Abs(*got.Duplicates.Share-0.25) > 1e-9 {
		t.Errorf("got %+v and a share of %v", got.Problems, *got.Duplicates.Share)
	}
	if all := s.latest.Load(); all.Totals.Problems != want ||
		*all.Totals.Duplicates.Share != *got.Duplicates.Share ||
		fmt.Sprint(all.Held) != "[orders[3] held at offset 7]" {
		t.Errorf("of all pipelines: %+v, %v", all.Totals, all.Held)
	}
	source.pipeline.Partitions = nil
	for range historyLength {
		got = sample()
	}
	if got.Problems.Count != 0 || got.Duplicates.Share != nil || got.Duplicates.Total != 1035 {
		t.Errorf("five minutes later: %+v, %+v", got.Problems, got.Duplicates)
	}
}

func TestTheLatestDroppedCopiesOfAllPipelinesAreListed(t *testing.T) {
	var pipelines []Pipeline
	for n := range 3 {
		p := Pipeline{Input: fmt.Sprint("topic", n)}
		for i := range 10 {
			p.Dropped = append(p.Dropped, DroppedCopy{At: noon.Add(-time.Duration(i) * time.Second),
				ID: []byte{byte('a' + i)}, ClaimedAt: noon.Add(time.Hour)})
		}
		pipelines = append(pipelines, p)
	}
	s := newSampler(Options{Lookup: true}, &prober{}, Cleaner(nil))
	got := s.dropped(pipelines, noon)
	if len(got) != 20 || got[0].Topic != "topic0" || got[2].Topic != "topic2" ||
		got[19].ID != "g" || *got[0].Age != 0 {
		t.Errorf("%+v", got)
	}
	s = newSampler(Options{}, &prober{}, Cleaner(nil))
	if got := s.dropped(pipelines, noon); got[0].ID != "" {
		t.Errorf("look-ups are off, and the page shows the ID %q", got[0].ID)
	}
}

func TestIDsAreShownAsTheLookUpTakesThem(t *testing.T) {
	for id, want := range map[string]string{"a/b?c=ü": "a/b?c=ü false", "\xff": "ff true",
		"a\nb": "610a62 true", "": " false"} {
		if text, inHex := textOf([]byte(id)); fmt.Sprint(text, " ", inHex) != want {
			t.Errorf("%q: %q, %t", id, text, inHex)
		}
	}
}

func TestTheForecastIsOfAWholeTTL(t *testing.T) {
	source := &growing{pipeline: Pipeline{Input: "orders", TTL: time.Hour}}
	s := newSampler(Options{Source: source}, &prober{}, Cleaner(nil))
	source.count(0, 0, 0, 0, 0)
	s.sample(noon)
	if got := s.latest.Load().Store.Forecast; got.Claims != nil {
		t.Errorf("a forecast from one look: %+v", got)
	}
	source.count(200, 100, 0, 0, 0)
	source.facts = []Fact{{"disk_used", 50_000, "bytes"}, {"claims_kept", 9_999, "count"}}
	s.sample(noon.Add(2 * time.Second))
	got := s.latest.Load().Store.Forecast
	if got.Claims == nil || *got.Claims != 100*3600 || got.Bytes != nil {
		t.Errorf("%+v", got)
	}
	source.facts[0].Value, source.facts[1].Value = 1_000_000, 20_000
	s.sample(noon.Add(4 * time.Second))
	if got := s.latest.Load().Store.Forecast; got.Bytes == nil || *got.Bytes != 50*50*3600 {
		t.Errorf("%+v", got)
	}
}
