package server

import (
	"bytes"
	"encoding/json"
	"flag"
	"log/slog"
	"math"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write testdata again")

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// script is a source that shows everything once: rates, a failure, a blocked store, events.
type script struct {
	Source
	step  float64
	calls int
}

func (s *script) Snapshot() Snapshot {
	s.calls++
	n := s.step * float64(s.calls)
	lag, long := int64(1234), int64(9_876_543)
	state := LaneRunning
	var blocked []string
	if s.calls > 3 {
		state, blocked = LaneBlocked, []string{"orders lane 1"}
	}
	return Snapshot{
		Configured: noon.Add(-time.Minute),
		Pipelines: []Pipeline{
			{
				Input: "orders", Output: "orders.clean", ConsumerGroup: "orders-dedup",
				Delivery: "exactly_once", Mode: "enforce", Failures: 3,
				Lanes: []Lane{
					{Lane: 0, State: LaneRunning, InHand: 5000, Partitions: 2},
					{Lane: 1, State: state, InHand: 17, Partitions: 1, Failures: 2,
						Failure: &Failure{Text: "commit: <fenced>", Hint: "one name each",
							At: noon.Add(-5 * time.Minute)}},
				},
				Partitions: []Partition{{Partition: 0, DoneTo: 1_000_000, Lag: &lag},
					{Partition: 2, Lag: &long},
					{Partition: 5, Lane: 1, DoneTo: 7, Held: "held at offset 7: <null_key>",
						Hidden: 12}},
				TTL: time.Hour, Undeliverable: n / 2469,
				Dropped: []DroppedCopy{
					{At: noon.Add(time.Second), ID: []byte("<o-17>"), Place: "orders[0]@812",
						Owner: "orders[2]@7", ClaimedAt: noon.Add(-90 * time.Second),
						Became: BecameNothing},
					{At: noon, ID: []byte{0, 0xff}, Place: "orders[0]@811", Conflict: true,
						Differs: "the value in <total>",
						Owner:   "claimed by hand", ClaimedAt: noon.Add(time.Second),
						Became: BecameLetter},
				},
				Outcomes: []Count{{"forwarded", n}, {"duplicate", n / 8}, {"passed_through", 0}},
				Verdicts: []Count{{"first", n}, {"duplicate", n / 8}},
				Batches:  []Count{{"committed", float64(s.calls)}, {"failed", 3}},
			},
			{
				Input: "refunds", Output: "refunds.clean", ConsumerGroup: "refunds-dedup",
				Delivery: "at_least_once", Mode: "observe",
				Lanes:    []Lane{{State: LaneJoining}},
				Outcomes: []Count{{"forwarded", 0}}, Verdicts: []Count{{"first", 0}},
				Batches: []Count{{"committed", 0}},
			},
		},
		Store: Store{
			Type: "cassandra", Blocked: blocked, Claims: []Count{{"applied", n}, {"exists", n / 8}},
			Batches: Durations{
				Bounds: []float64{0.001, 0.008, 0.064}, Count: uint64(100 * s.calls),
				Sum:    0.5 * float64(s.calls),
				Counts: []uint64{uint64(10 * s.calls), uint64(99 * s.calls), uint64(100 * s.calls)},
			},
			Facts: []Fact{{"requests_in_flight", 12, "count"}, {"disk_used", 5 << 20, "bytes"},
				{"claims_kept", 20_000, "count"}},
			Keepers: []Keeper{
				{"orders-dedup", "kdedup-0", "10.0.0.1:9481", KeeperSelf, []int{0, 3}, new(int64)},
				{"orders-dedup", "kdedup-1", "10.0.0.2:9481", KeeperSilent, []int{}, nil},
			},
		},
		Clusters: []Cluster{
			{ClusterInput, []string{"a:9092", "b:9092"}, "MkU3OEVBNTcwNTJENDM2Qk",
				[]string{"orders", "refunds"}},
			{ClusterOutput, []string{"c:9092"}, "", []string{"orders.clean", "refunds.clean"}},
		},
		API: &API{Address: "http://127.0.0.1:9481", Waiting: "the store <is> away", Keys: "files",
			UnderWay: 3, Answers: []Count{{"ok", n}, {"unread", 0}},
			Refused: []Count{{"stranger", 2}, {"busy", 0}},
			Scopes: []APIScope{{Name: "mails", Verdicts: []Count{{"first", n}, {"duplicate", 0}},
				Begins: []Count{{"acquired", n / 2}, {"in_progress", 1}}, InHand: 7}},
			Callers: []APICaller{{Name: "shop", Proof: "token", Scopes: []string{"mails"},
				Requests: n}}},
		Events: []Event{
			{Level: "ERROR", Message: "lane stopped", Error: "the input topic was replaced",
				Hint: "reset the group", Topic: "orders", Lane: "1", Count: 1, First: noon,
				Last: noon},
			{Level: "WARN", Message: "lane failed", Details: "pause=1s", Topic: "orders", Count: 12,
				First: noon.Add(-time.Hour), Last: noon.Add(-time.Minute)},
			{Level: "WARN", Message: "something without a place", Count: 2, First: noon,
				Last: noon},
		},
	}
}

func (s *script) Settings() []Setting {
	return []Setting{{"kafka.brokers", "a:9092, b:9092", false},
		{"kafka.sasl.password", "[hidden]", false}, {"log.level", "info", true}}
}

// scripted is a sampler after some snapshots, two seconds apart.
func scripted(t *testing.T, snapshots int) (Options, *sampler) {
	t.Helper()
	o := Options{
		Source: &script{step: 24690}, Every: time.Hour, Lookup: true,
		Logger: slog.New(slog.DiscardHandler),
		About: About{
			Instance: "kdedup-0", Version: "v1.2.3", Revision: "0123456789ab", Go: "go1.26",
			Platform: "linux/amd64", Started: noon.Add(-3 * time.Hour),
		},
	}
	probes := &prober{}
	probes.found, probes.at = []checkStatus{{Name: "store", OK: true},
		{Name: "cluster of the input", OK: true},
		{Name: "cluster of the output", Error: "no broker answers"},
		{Name: "topic refunds", Error: "lane 0: has not joined the consumer group yet"}}, noon
	s := newSampler(o, probes, Cleaner(nil))
	for n := range snapshots {
		s.sample(noon.Add(time.Duration(n) * 2 * time.Second))
	}
	return o, s
}

// Field names and forms are an interface: dashboards and scripts read them.
func TestTheStatusHasTheFieldsThatAreDocumented(t *testing.T) {
	_, s := scripted(t, 6)
	got, err := json.MarshalIndent(s.latest.Load(), "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update {
		if err := os.WriteFile("testdata/status.json", got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/status.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("testdata/status.json (-want +got), -update writes it again:\n%s", diff)
	}
	manual, err := os.ReadFile("../../docs/status-page.md")
	if err != nil {
		t.Fatal(err)
	}
	var fields any
	if err := json.Unmarshal(got, &fields); err != nil {
		t.Fatal(err)
	}
	for name := range names(fields) {
		if !bytes.Contains(manual, []byte("`"+name+"`")) {
			t.Errorf("docs/status-page.md does not tell what %s is", name)
		}
	}
}

// names are all keys in a JSON document.
func names(v any) map[string]bool {
	all := map[string]bool{}
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			all[name] = true
			for deeper := range names(inner) {
				all[deeper] = true
			}
		}
	case []any:
		for _, inner := range v {
			for deeper := range names(inner) {
				all[deeper] = true
			}
		}
	}
	return all
}

func TestStatesTellSinceWhen(t *testing.T) {
	_, s := scripted(t, 6)
	got := s.latest.Load()
	lane, store := got.Pipelines[0].Lanes[1], got.Store
	if want := noon.Add(6 * time.Second); !lane.Since.at.Equal(want) ||
		!store.BlockedSince.at.Equal(want) || !store.Since.at.Equal(want) {
		t.Errorf("lane since %v, store since %v, blocked since %v, want %v", lane.Since.at,
			store.Since.at, store.BlockedSince.at, want)
	}
	if first := got.Pipelines[0].Lanes[0].Since.at; !first.Equal(noon) {
		t.Errorf("the other lane since %v, want %v", first, noon)
	}
	if store.State != "blocked" || got.State != "not_ready" {
		t.Errorf("store %s, process %s", store.State, got.State)
	}
}

func TestTheStoreIsDownWhenItsCheckFails(t *testing.T) {
	o, _ := scripted(t, 1)
	probes := &prober{found: []checkStatus{{Name: StoreCheck, Error: "no hosts"}}, at: noon}
	s := newSampler(o, probes, Cleaner(nil))
	s.sample(noon)
	if got := s.latest.Load().Store; got.State != "down" || got.Error != "no hosts" {
		t.Errorf("got %s, %q", got.State, got.Error)
	}
	s = newSampler(o, &prober{}, Cleaner(nil))
	s.sample(noon)
	if got := s.latest.Load(); got.Store.State != "unknown" || got.State != "starting" {
		t.Errorf("before the first check: store %s, process %s", got.Store.State, got.State)
	}
}

func TestRatesAreTakenOverTheLastIntervals(t *testing.T) {
	var c counter
	c.set(100, 0)
	if c.perSecond() != nil {
		t.Error("a rate from one value")
	}
	for _, total := range []float64{100, 100, 120, 120, 120, 120, 140} {
		c.set(total, 2*time.Second)
	}
	if got := *c.perSecond(); got != 4 { // the last five: 10, 0, 0, 0, 10
		t.Errorf("per second %v, want 4", got)
	}
	c.set(0, 2*time.Second) // a counter never goes back; if it did, no rate is below zero
	if got := *c.perSecond(); got != 2 {
		t.Errorf("per second %v, want 2", got)
	}
}

func TestHistoriesAreBounded(t *testing.T) {
	var c counter
	for n := range 10 * historyLength {
		c.set(float64(n*n), time.Second)
	}
	if n := len(c.shown()); n != historyLength {
		t.Errorf("%d values", n)
	}
	if got, want := c.shown()[historyLength-1], 3000.0; got != want {
		t.Errorf("the last value is %v, want %v with three digits", got, want)
	}
	var quiet history
	quiet.push(0)
	if n := len(quiet.shown()); n != 0 {
		t.Errorf("%d zeros are sent", n)
	}
}

func TestDurationsAreOfTheLastIntervals(t *testing.T) {
	bounds := []float64{0.001, 0.01, 0.1}
	slow := Durations{Bounds: bounds, Counts: []uint64{0, 0, 1000}, Count: 1000, Sum: 90}
	for _, c := range []struct {
		name      string
		now       Durations
		mean, p99 float64 // below zero: none
	}{
		{"nothing happened", slow, -1, -1},
		{"fast ones", Durations{Bounds: bounds, Counts: []uint64{0, 100, 1100}, Count: 1100,
			Sum: 90.5}, 0.005, 0.01},
		{"one in a hundred is slow", Durations{Bounds: bounds, Counts: []uint64{99, 99, 1100},
			Count: 1100, Sum: 90.1}, 0.001, 0.001},
		{"two in a hundred are slow", Durations{Bounds: bounds, Counts: []uint64{98, 98, 1100},
			Count: 1100, Sum: 90.2}, 0.002, 0.1},
		{"beyond the last bound", Durations{Bounds: bounds, Counts: []uint64{0, 0, 1000},
			Count: 1100, Sum: 190}, 1, -1},
	} {
		got := between(slow, c.now)
		for _, v := range []struct {
			name string
			got  *float64
			want float64
		}{{"mean", got.Mean, c.mean}, {"p99", got.P99, c.p99}} {
			if v.want < 0 != (v.got == nil) || v.got != nil && math.Abs(*v.got-v.want) > 1e-9 {
				t.Errorf("%s: %s is %v, want %v", c.name, v.name, v.got, v.want)
			}
		}
	}
}

func TestNumbersAndTimesForPeople(t *testing.T) {
	p := func(v float64) *float64 { return &v }
	for _, c := range []struct{ got, want string }{
		{formatCount(0), "0"}, {formatCount(999), "999"}, {formatCount(1000), "1,000"},
		{formatCount(112116), "112,116"}, {formatCount(-1234567), "-1,234,567"},
		{formatRate(nil), "–"}, {formatRate(p(0)), "0"}, {formatRate(p(0.01)), "<0.1"},
		{formatRate(p(9.94)), "9.9"}, {formatRate(p(9.95)), "10"},
		{formatRate(p(12345.6)), "12,346"},
		{formatSeconds(nil), "–"}, {formatSeconds(p(0.00042)), "0.4 ms"}, {formatSeconds(p(0.0123)),
			"12 ms"}, {formatSeconds(p(1.25)), "1.3 s"}, {formatSeconds(p(1234.5)), "1,234 s"},
		{formatBytes(512), "512 B"}, {formatBytes(5 << 20), "5.0 MiB"},
		{formatBytes(1 << 60), "1048576.0 TiB"},
		{formatShare(nil), "–"}, {formatShare(p(0)), "0 %"}, {formatShare(p(0.0004)), "<0.1 %"},
		{formatShare(p(0.0949)), "9.5 %"}, {formatShare(p(0.0995)), "10 %"},
		{formatShare(p(1)), "100 %"}, {formatLasting(nil), "–"}, {formatLasting(p(-3)), "0 s"},
		{formatAge(nil), "–"}, {formatAge(p(0.2)), "<1 s"}, {formatAge(p(91)), "91 s"},
		{formatAgo(moment{}), "–"}, {formatAgo(moment{noon, noon.Add(119 * time.Second)}), "119 s"},
		{formatAgo(moment{noon, noon.Add(2 * time.Minute)}), "2 min"},
		{formatAgo(moment{noon, noon.Add(47 * time.Hour)}), "47 h"},
		{formatAgo(moment{noon, noon.Add(48 * time.Hour)}), "2 d"},
		{formatAgo(moment{noon.Add(time.Second), noon}), "0 s"},
		{formatTime(noon), "2026-11-21 12:00:00Z"}, {formatTime(time.Time{}), "–"},
		{formatLine([]float64{0, 0}), ""},
		{formatLine([]float64{0, 5, 10}), "M147 23.0 L148 12.0 L149 1.0"},
		{formatArea([]float64{0, 10}), "M148 23.0 L149 1.0 L149 24 L148 24 Z"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
