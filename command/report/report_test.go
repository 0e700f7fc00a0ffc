package report

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/connect/logreader"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/dedup/messageid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

// topic is an input topic in memory.
type topic struct{ partitions map[int32][]*kgo.Record }

// put appends a record that came so long after the start.
func (t *topic) put(partition int32, after time.Duration, id, value string) *kgo.Record {
	r := &kgo.Record{
		Topic: "orders", Partition: partition, Offset: int64(len(t.partitions[partition])),
		Timestamp: start.Add(after), Value: []byte(value),
	}
	if id != "" {
		r.Headers = []kgo.RecordHeader{{Key: "message-id", Value: []byte(id)}}
	}
	if t.partitions == nil {
		t.partitions = make(map[int32][]*kgo.Record)
	}
	t.partitions[partition] = append(t.partitions[partition], r)
	return r
}

// build makes a report of the topic as if it was read from Kafka, a partition at a time.
func (t *topic) build(tb testing.TB, change func(*Options)) *Report {
	tb.Helper()
	r, err := t.try(tb, change)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// byHeader finds IDs in the header message-id.
func byHeader(tb testing.TB, rules messageid.Rules) *messageid.Extractor {
	tb.Helper()
	e, err := messageid.New(messageid.Source{From: "header", Name: "message-id"})
	if err == nil {
		e, err = e.With(rules)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

func (t *topic) try(tb testing.TB, change func(*Options)) (*Report, error) {
	tb.Helper()
	o := Options{
		Log:       logreader.Log{Topic: "orders", Partitions: make(map[int32]logreader.Range)},
		Extractor: byHeader(tb, messageid.Rules{}), Version: "v1.2.3",
		Pipeline: Pipeline{ConsumerGroup: "orders-dedup", Output: "orders.clean", Mode: "enforce",
			OnMissingID: "dead_letter", OnConflict: "drop",
			TTL: time.Hour, Store: "cassandra", Buckets: 256,
			Disk: Disk{RowBytes: func(idBytes int) int { return 35 + idBytes },
				Grace: 3 * time.Hour}},
		Now: func() time.Time { return start.Add(30 * 24 * time.Hour) }, TempDir: tb.TempDir(),
	}
	o.Outcome = func(v dedup.Verdict) string {
		return map[dedup.Verdict]string{
			dedup.VerdictFirst: "forwarded", dedup.VerdictMissing: "dead_lettered",
			dedup.VerdictDuplicate: "duplicate", dedup.VerdictConflict: "conflict",
		}[v]
	}
	o.Read = func(each visitor) error {
		for p := range int32(len(t.partitions)) {
			if err := each(t.partitions[p]); err != nil {
				return err
			}
		}
		return nil
	}
	for p, records := range t.partitions {
		o.Log.Partitions[p] = logreader.Range{End: int64(len(records))}
	}
	if change != nil {
		change(&o)
	}
	return Build(tb.Context(), o)
}

// The report goes by only_if, on_tombstone and fingerprint, as a pipeline does.
func TestRecordsWithoutALookedForIDAreCountedApart(t *testing.T) {
	var in topic
	in.put(0, 0, "a", `{"n":1,"at":1}`)
	in.put(0, time.Second, "a", `{"at":2,"n":1}`)
	in.put(0, 2*time.Second, "a", `{"n":2,"at":1}`)
	in.put(0, 3*time.Second, "a", `{"at":1}`)
	in.put(0, 4*time.Second, "a", "").Value = nil
	in.put(0, 5*time.Second, "", `{"n":1}`)
	r := in.build(t, func(o *Options) {
		o.Extractor = byHeader(t, messageid.Rules{
			OnlyIf:      &messageid.Condition{Place: messageid.Source{From: "json", Path: "n"}},
			Tombstones:  true,
			Fingerprint: messageid.Content{Ignore: []string{"at"}},
		})
		known := o.Outcome
		o.Outcome = func(v dedup.Verdict) string {
			if v == dedup.VerdictExempt || v == dedup.VerdictTombstone {
				return "passed_through"
			}
			return known(v)
		}
	})
	want := Totals{Records: 6, Missing: 1, DistinctIDs: 1, Copies: 2, Duplicates: 1, Conflicts: 1,
		CopyShare: 2. / 6, ConflictingIDs: 1, Exempt: 1, Tombstones: 1}
	if diff := cmp.Diff(want, r.Totals); diff != "" {
		t.Error(diff)
	}
	outcomes := []Count{{"forwarded", 1}, {"duplicate", 1}, {"conflict", 1}, {"dead_lettered", 1},
		{"passed_through", 2}}
	if diff := cmp.Diff(outcomes, r.Run.Outcomes); diff != "" {
		t.Error(diff)
	}
}

func TestCopiesAreCountedByContentAndPlace(t *testing.T) {
	var in topic
	in.put(0, 0, "a", "1")
	in.put(1, time.Second, "a", "1")   // on another partition
	in.put(0, 2*time.Second, "a", "2") // other content
	in.put(0, 3*time.Second, "b", "1")
	in.put(0, 4*time.Second, "", "1")
	in.put(1, 5*time.Second, "b", "1")
	in.put(1, 6*time.Second, "c", "1")
	in.put(1, 7*time.Second, "b", "1")
	r := in.build(t, nil)
	want := Totals{
		Records: 8, Missing: 1, DistinctIDs: 3, Copies: 4, Duplicates: 3, Conflicts: 1,
		CopyShare: 0.5, ConflictingIDs: 1, OtherPartition: 3,
	}
	if diff := cmp.Diff(want, r.Totals); diff != "" {
		t.Error(diff)
	}
	rows := []Row{{"0", 4, 1, 0, 1, 0.25}, {"1", 4, 0, 3, 0, 0.75}}
	if diff := cmp.Diff(rows, r.Partitions); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Missing{{"absent", 1}}, r.Missing); diff != "" {
		t.Error(diff)
	}
	top := []TopID{{"a", 3, start, start.Add(2 * time.Second)},
		{"b", 3, start.Add(3 * time.Second), start.Add(7 * time.Second)}}
	if diff := cmp.Diff(top, r.TopIDs); diff != "" {
		t.Error(diff)
	}
	if c := r.Conflicts; len(c) != 1 || c[0].ID != "a" || c[0].First.Offset != 0 ||
		c[0].Other.Offset != 1 || c[0].First.Fingerprint == c[0].Other.Fingerprint {
		t.Errorf("conflicts: %+v", c)
	}
	outcomes := []Count{{"forwarded", 3}, {"duplicate", 3}, {"conflict", 1}, {"dead_lettered", 1}}
	if diff := cmp.Diff(outcomes, r.Run.Outcomes); diff != "" {
		t.Error(diff)
	}
}

// What a ttl catches is compared with a store that is played record by record.
func TestWindowsCatchWhatAStoreWithThatTTLCatches(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var in topic
	for i := range 3000 {
		in.put(int32(random.IntN(4)), time.Duration(i)*7*time.Second,
			strconv.Itoa(random.IntN(700)), strconv.Itoa(random.IntN(40)/39))
	}
	for _, ttl := range []time.Duration{time.Second, time.Minute, 17 * time.Minute, time.Hour,
		90 * time.Minute, 2 * time.Hour, 100 * time.Hour} {
		r := in.build(t, func(o *Options) { o.Pipeline.TTL = ttl })
		if want := in.play(ttl); !cmp.Equal(want, r.Run.Verdicts) {
			t.Errorf("ttl %v: %v, want %v", ttl, r.Run.Verdicts, want)
		}
		var onCurve float64
		for _, p := range r.TTL.Curve {
			if p.Seconds <= ttl.Seconds() {
				onCurve = p.CaughtShare
			}
		}
		if got := *r.TTL.Configured.CaughtShare; got != onCurve {
			t.Errorf("ttl %v catches %v, and %v on the curve", ttl, got, onCurve)
		}
		for _, a := range r.TTL.Advised {
			advised := time.Duration(a.Seconds) * time.Second
			shorter := time.Duration(
				steps[stepAbove(advised.Milliseconds()-1)-1]) * time.Millisecond
			if in.caught(advised) < a.Share || in.caught(shorter) >= a.Share {
				t.Errorf("advised for %v: %v catches %v, the step before it %v", a.Share, advised,
					in.caught(advised), in.caught(shorter))
			}
		}
	}
}

// play judges all records in the order in which they came.
func (t *topic) play(ttl time.Duration) []Count {
	type claim struct {
		at    time.Time
		value string
	}
	claims := make(map[string]claim)
	counts := []Count{{"first", 0}, {"duplicate", 0}, {"conflict", 0}, {"missing", 0}}
	for _, r := range t.inOrder() {
		id := string(r.Headers[0].Value)
		c, known := claims[id]
		switch {
		case !known || r.Timestamp.Sub(c.at) >= ttl:
			claims[id] = claim{r.Timestamp, string(r.Value)}
			counts[0].Records++
		case c.value == string(r.Value):
			counts[1].Records++
		default:
			counts[2].Records++
		}
	}
	return counts
}

func (t *topic) caught(ttl time.Duration) float64 {
	dropped := func(ttl time.Duration) float64 {
		played := t.play(ttl)
		return float64(played[1].Records + played[2].Records)
	}
	return dropped(ttl) / dropped(1000000*time.Hour)
}

func (t *topic) inOrder() []*kgo.Record {
	var all []*kgo.Record
	next := make(map[int32]int)
	for {
		var first *kgo.Record
		for p := range int32(len(t.partitions)) {
			if next[p] < len(t.partitions[p]) {
				if r := t.partitions[p][next[p]]; first == nil ||
					r.Timestamp.Before(first.Timestamp) {
					first = r
				}
			}
		}
		if first == nil {
			return all
		}
		next[first.Partition]++
		all = append(all, first)
	}
}

// Cassandra keeps a claim for gc_grace_seconds after its end.
func TestDiskIsForClaimsThatEndedLatelyToo(t *testing.T) {
	var in topic
	for i := range 101 {
		in.put(0, time.Duration(i)*time.Second, "id-"+strconv.Itoa(1000+i), "1")
	}
	r := in.build(t, func(o *Options) { o.Pipeline.TTL = 2 * time.Hour })
	w, perSecond := r.TTL.Configured, r.Rate.IDsPerSecond
	if w.Rows == nil || *w.Rows != perSecond*7200 {
		t.Errorf("rows %v, want those of two hours at %v a second", w.Rows, perSecond)
	}
	if w.Bytes == nil || *w.Bytes != perSecond*5*3600*(35+7) {
		t.Errorf("bytes %v, want those of five hours with 42 for each", w.Bytes)
	}
	unknown := in.build(t, func(o *Options) { o.Pipeline.Disk = Disk{} })
	if w := unknown.TTL.Configured; w.Rows == nil || w.Bytes != nil {
		t.Errorf("a store of which nothing is known: %+v", w)
	}
}

func TestFilesAndMemoryGiveTheSameReport(t *testing.T) {
	var in topic
	random := rand.New(rand.NewPCG(5, 6))
	for i := range 8_000 {
		in.put(int32(i%5), time.Duration(i)*time.Second, fmt.Sprintf("order/%d", random.IntN(4000)),
			"v")
	}
	want := in.build(t, nil)
	// more runs than are merged at a time; some; a few
	for _, memory := range []int{1 << 10, 20 << 10, 300 << 10} {
		dir := t.TempDir()
		if diff := cmp.Diff(want, in.build(t, func(o *Options) {
			o.memory, o.TempDir = memory, dir
		})); diff != "" {
			t.Errorf("with %d bytes of memory:\n%s", memory, diff)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("with %d bytes of memory %v are left behind, %v", memory, left, err)
		}
	}
}

func TestFilesThatCannotBeWrittenEndTheReport(t *testing.T) {
	var in topic
	for i := range 100 {
		in.put(0, 0, fmt.Sprint(i), "v")
	}
	_, err := in.try(t, func(o *Options) {
		o.memory, o.TempDir = 1<<10, filepath.Join(t.TempDir(), "none")
	})
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "write temporary files") {
		t.Errorf("got %v", err)
	}
}

func TestAnInterruptedReportLeavesNothing(t *testing.T) {
	var in topic
	for i := range 100 {
		in.put(int32(i%2), 0, fmt.Sprint(i), "v")
	}
	dir := t.TempDir()
	stop := errors.New("interrupted")
	_, err := in.try(t, func(o *Options) {
		read := o.Read
		o.memory, o.TempDir = 1<<10, dir
		o.Read = func(each visitor) error { return errors.Join(read(each), stop) }
	})
	if left, readErr := os.ReadDir(dir); !errors.Is(err, stop) || readErr != nil || len(left) > 0 {
		t.Errorf("%v, %v, left behind: %v", err, readErr, left)
	}
}
