package report

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/kdedup/kdedup/dedup"
)

// compose makes the report of both passes.
func (o Options) compose(c *collector, a *analysis) *Report {
	r := &Report{
		Topic: o.Log.Topic, GeneratedAt: o.Now().UTC().Truncate(time.Second), Version: o.Version,
		MessageID: o.Extractor.String(),
		Settings: Settings{
			ConsumerGroup: o.Pipeline.ConsumerGroup, Output: o.Pipeline.Output,
			Mode:        o.Pipeline.Mode,
			OnMissingID: o.Pipeline.OnMissingID, OnConflict: o.Pipeline.OnConflict,
			Store: o.Pipeline.Store, Buckets: o.Pipeline.Buckets,
		},
		Range: o.rangeOf(c),
		Clock: Clock{
			Kind: c.clock.name(), Ahead: c.clock.ahead, Backward: c.clock.backward,
			BackwardSeconds: seconds(c.clock.farthest),
		},
		Totals: totalsOf(c, a), Missing: missingOf(c),
		Run: o.runOf(c, a), Partitions: partitionRows(c), ByHeader: headerRows(c),
		TopIDs: o.topIDs(a), Conflicts: o.conflicts(a),
	}
	r.Rate = rateOf(c, a, r.Range.Seconds)
	r.Ages = agesOf(a)
	r.IDs = o.idsOf(c, a)
	r.IDs.Spellings = c.spellings.found()
	r.IDs.CutOff = c.documents.CutOff()
	r.Differing = c.contents.differing()
	r.TTL = o.ttlOf(a, r)
	return r
}

func seconds(ms int64) float64 { return float64(ms) / 1000 }

func timeOf(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

func share(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

func (o Options) rangeOf(c *collector) Range {
	r := Range{Whole: !o.Bounded, Partitions: []PartitionRange{}}
	if c.records > 0 {
		r.From, r.To = timeOf(c.clock.first), timeOf(c.clock.last)
		r.Seconds = seconds(c.clock.last - c.clock.first)
	}
	for _, p := range slices.Sorted(maps.Keys(o.Log.Partitions)) {
		r.Partitions = append(r.Partitions,
			PartitionRange{p, o.Log.Partitions[p].Start, o.Log.Partitions[p].End})
	}
	return r
}

func totalsOf(c *collector, a *analysis) Totals {
	t := Totals{
		Records: c.records, DistinctIDs: a.ids, Copies: a.copies(), Duplicates: a.duplicates,
		Conflicts: a.conflicts,
		CopyShare: share(a.copies(), c.records), ConflictingIDs: a.conflictingIDs,
		OtherPartition: a.otherPartition, Exempt: c.apart[dedup.VerdictExempt],
		Tombstones: c.apart[dedup.VerdictTombstone],
	}
	for _, n := range c.missing {
		t.Missing += n
	}
	return t
}

func missingOf(c *collector) []Missing {
	found := []Missing{}
	for _, reason := range dedup.MissingReasons() {
		if n := c.missing[reason]; n > 0 {
			found = append(found, Missing{reason.String(), n})
		}
	}
	return found
}

// leastRange is the shortest one that tells a rate.
const leastRange = 1.0

func rateOf(c *collector, a *analysis, length float64) Rate {
	r := Rate{Bars: []Bar{}, BarSeconds: seconds(barWidths[c.series.width])}
	if length >= leastRange {
		r.RecordsPerSecond, r.IDsPerSecond = float64(c.records)/length, float64(a.ids)/length
		r.PeakPerSecond = max(c.series.peak(), r.RecordsPerSecond)
	}
	if c.records == 0 {
		return r
	}
	for n := c.series.low; n <= c.series.high; n++ {
		b := c.series.bars[n]
		r.Bars = append(r.Bars, Bar{timeOf(n * barWidths[c.series.width]), b.records, b.copies})
	}
	return r
}

func agesOf(a *analysis) Ages {
	ages := Ages{Rows: []AgeRow{}}
	if a.copies() == 0 {
		return ages
	}
	quantile := func(share float64) *float64 {
		largest := seconds(a.farthest)
		if step, found := a.ladder.ageBelow(share); found {
			largest = min(largest, seconds(step))
		}
		return &largest
	}
	ages.P50, ages.P90, ages.P99, ages.P999, ages.Largest = quantile(0.5), quantile(0.9),
		quantile(0.99), quantile(0.999), quantile(2)
	from := 0.0
	for i, n := range a.ages {
		row := AgeRow{From: from, Copies: n}
		if i < len(ageEdges) {
			to := seconds(ageEdges[i])
			row.To, from = &to, to
		}
		ages.Rows = append(ages.Rows, row)
	}
	return ages
}

// runOf counts what the pipeline would have done with each verdict.
func (o Options) runOf(c *collector, a *analysis) Run {
	counts := maps.Clone(a.verdicts)
	for _, n := range c.missing {
		counts[dedup.VerdictMissing] += n
	}
	maps.Copy(counts, c.apart)
	run := Run{Verdicts: []Count{}, Outcomes: []Count{}}
	for _, v := range []dedup.Verdict{dedup.VerdictFirst, dedup.VerdictDuplicate,
		dedup.VerdictConflict, dedup.VerdictMissing, dedup.VerdictExempt,
		dedup.VerdictTombstone} {
		if counts[v] == 0 && (v == dedup.VerdictExempt || v == dedup.VerdictTombstone) {
			continue
		}
		run.Verdicts = append(run.Verdicts, Count{v.String(), counts[v]})
		name := o.Outcome(v)
		at := slices.IndexFunc(run.Outcomes, func(c Count) bool { return c.Name == name })
		if at < 0 {
			at = len(run.Outcomes)
			run.Outcomes = append(run.Outcomes, Count{Name: name})
		}
		run.Outcomes[at].Records += counts[v]
	}
	return run
}

func rowOf(name string, t *tally) Row {
	return Row{name, t.records, t.missing, t.duplicates, t.conflicts, share(t.copies(), t.records)}
}

func partitionRows(c *collector) []Row {
	rows := []Row{}
	for _, p := range slices.Sorted(maps.Keys(c.partitions)) {
		rows = append(rows, rowOf(strconv.Itoa(int(p)), c.partitions[p]))
	}
	return rows
}

func headerRows(c *collector) *ByHeader {
	if c.headers == nil {
		return nil
	}
	by := &ByHeader{Header: c.headers.name, Values: []Row{}}
	for i, value := range c.headers.values {
		if c.headers.tallies[i].records > 0 {
			by.Values = append(by.Values, rowOf(text([]byte(value)), c.headers.tallies[i]))
		}
	}
	slices.SortStableFunc(by.Values, func(x, y Row) int {
		return cmp.Or(cmp.Compare(y.Duplicates+y.Conflicts, x.Duplicates+x.Conflicts),
			cmp.Compare(y.Records, x.Records))
	})
	return by
}

// text is hexadecimal if the bytes are not text.
func text(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return hex.EncodeToString(b)
}

// shown is an ID as the report may show it.
func (o Options) shown(id dedup.ID) string {
	if o.HideIDs {
		sum := sha256.Sum256([]byte(id))
		return "sha256:" + hex.EncodeToString(sum[:6])
	}
	return text([]byte(id))
}

func (o Options) topIDs(a *analysis) []TopID {
	found := []TopID{}
	for _, r := range a.top.ids {
		found = append(found, TopID{o.shown(r.id), r.records, timeOf(r.first), timeOf(r.last)})
	}
	return found
}

func (o Options) conflicts(a *analysis) []Conflict {
	found := []Conflict{}
	for _, c := range a.examples {
		found = append(found, Conflict{o.shown(c.id), placeOf(c.first), placeOf(c.other)})
	}
	return found
}

func placeOf(o occurrence) Place {
	return Place{o.partition, o.offset, timeOf(o.at), hex.EncodeToString(o.fingerprint[:])}
}
