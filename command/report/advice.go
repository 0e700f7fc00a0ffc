package report

import (
	"strings"
	"time"

	"github.com/kdedup/kdedup/dedup"
)

// advisedShares are the parts of all copies for which a window is advised.
var advisedShares = []float64{0.99, 0.999}

// ttlOf compares the configured window with those that would do.
func (o Options) ttlOf(a *analysis, r *Report) TTL {
	totals := a.ladder.totals()
	dropped := a.verdicts[dedup.VerdictDuplicate] + a.verdicts[dedup.VerdictConflict]
	t := TTL{Configured: o.window(r, o.Pipeline.TTL, dropped), Advised: []Advice{},
		Curve: []Point{}, OldUnread: []int32{}}
	t.OldUnread = append(t.OldUnread, o.Pipeline.OldUnread...)
	if a.copies() == 0 {
		return t
	}
	for _, wanted := range advisedShares {
		for i, n := range totals {
			if float64(n) >= wanted*float64(a.copies()) {
				if !r.Range.bears(time.Duration(steps[i]) * time.Millisecond) {
					t.Short = true
					break
				}
				t.Advised = append(t.Advised,
					Advice{wanted, o.window(r, time.Duration(steps[i])*time.Millisecond, n)})
				break
			}
		}
	}
	t.Curve = curveOf(totals, a)
	return t
}

// bearingRange is how long a range must be to say anything about a ttl.
const bearingRange = time.Hour

// bears reports whether the range can tell that a window is long enough. Copies that come later
// than the range is long are not in it, and those that come nearly as late are seen for the first
// records only.
func (r Range) bears(ttl time.Duration) bool {
	length := r.To.Sub(r.From)
	return length >= bearingRange && length >= ttl+ttl/8
}

// curveOf leaves out steps that catch what the one before and the one behind catch.
func curveOf(totals []int64, a *analysis) []Point {
	curve := []Point{}
	for i, n := range totals {
		changes := i == 0 || n != totals[i-1] || i+1 < len(totals) && n != totals[i+1]
		if changes {
			curve = append(curve, Point{seconds(steps[i]), share(n, a.copies())})
		}
		if n == a.copies() {
			break
		}
	}
	return curve
}

func (r *Report) caughtShare(caught int64) *float64 {
	if r.Totals.Copies == 0 {
		return nil
	}
	s := share(caught, r.Totals.Copies)
	return &s
}

// longestEstimate is how many times the range a ttl may be long of which there is an estimate: a
// week from a minute. The rate of a few seconds is that of a burst.
const longestEstimate = 7 * 24 * 60

// window estimates what a ttl costs: claims live for it, and new IDs keep coming at the same rate.
func (o Options) window(r *Report, ttl time.Duration, caught int64) Window {
	w := Window{TTL: writeTTL(ttl), Seconds: ttl.Seconds(), Caught: caught,
		CaughtShare: r.caughtShare(caught)}
	if r.Rate.IDsPerSecond == 0 || ttl.Seconds() > longestEstimate*r.Range.Seconds {
		return w
	}
	rows := r.Rate.IDsPerSecond * ttl.Seconds()
	w.Rows = &rows
	if r.IDs.BytesPerRow > 0 {
		bytes := r.Rate.IDsPerSecond * (ttl + o.Pipeline.Disk.Grace).Seconds() * r.IDs.BytesPerRow
		w.Bytes = &bytes
	}
	if r.Settings.Buckets > 0 {
		perBucket := rows / float64(r.Settings.Buckets)
		w.RowsPerBucket = &perBucket
	}
	return w
}

// writeTTL writes a duration as the configuration takes it.
func writeTTL(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// idsOf says what the IDs look like and what a claim takes.
func (o Options) idsOf(c *collector, a *analysis) IDs {
	ids := IDs{Kinds: []Kind{}}
	if n := a.ids + a.copies(); n > 0 {
		ids.Kinds = c.sample.kinds(o.Now())
		ids.MeanBytes = float64(c.idBytes) / float64(n)
		ids.BytesPerRow = o.Pipeline.Disk.rowBytes(ids.MeanBytes)
		ids.Grace = o.Pipeline.Disk.Grace.Seconds()
	}
	if ids.Correlation = c.sample.correlation(); ids.Correlation != nil {
		is := *ids.Correlation >= ordered
		ids.TimeOrdered = &is
	}
	return ids
}
