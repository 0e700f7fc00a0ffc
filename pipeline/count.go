package pipeline

import (
	"strconv"
	"time"

	"github.com/kdedup/kdedup/consumer"
	"github.com/kdedup/kdedup/dedup"
	"github.com/kdedup/kdedup/internal/telemetry"
)

// counts is what a batch adds to the metrics once it is committed. Per record it takes a few
// comparisons; the shared series are touched once for each batch.
type counts struct {
	outcomes [len(outcomeNames)]int
	verdicts [dedup.VerdictCount]int

	judged  time.Time
	ages    map[dedup.Verdict]*telemetry.Tally // made with the first copy
	nearTTL int
	late    int          // records that were forwarded by an own claim whose life was half over
	copies  []run[int32] // duplicates and conflicts by partition
	sent    []run[int64] // records for the clean topic by timestamp, in milliseconds
}

// run is a number of records in sequence that are alike.
type run[T comparable] struct {
	of T
	n  int
}

func extend[T comparable](runs []run[T], of T) []run[T] {
	if last := len(runs) - 1; last >= 0 && runs[last].of == of {
		runs[last].n++
		return runs
	}
	return append(runs, run[T]{of, 1})
}

// nearShare of a claim's life is over when a copy counts as one that came near its end.
const nearShare = 0.8

// lateShare of a claim's life is over when a record that is forwarded by it counts as late. The
// forward does not renew the claim: what is left of it is how far apart copies may be that it still
// catches.
const lateShare = 0.5

// add counts one record that was decided.
func (c *counts) add(m *Metrics, r consumer.Record, j *dedup.Judgement, o Outcome) {
	c.outcomes[o]++
	c.verdicts[j.Verdict]++
	if o.sent() {
		c.sent = extend(c.sent, r.Timestamp.UnixMilli())
	}
	if (j.Verdict == dedup.VerdictMine || j.Verdict == dedup.VerdictInherited) &&
		m.isPast(lateShare, c.age(j)) {
		c.late++
	}
	if j.Verdict == dedup.VerdictDuplicate || j.Verdict == dedup.VerdictConflict {
		c.copies = extend(c.copies, r.Partition)
		c.addAge(m, j)
	}
}

// addAge counts how long after its claim a copy came. That is what the TTL is compared with: it
// begins at the claim. Timestamps of the records would tell when producers sent them, on clocks of
// their own.
func (c *counts) addAge(m *Metrics, j *dedup.Judgement) {
	if c.ages == nil {
		c.ages = make(map[dedup.Verdict]*telemetry.Tally)
	}
	tally := c.ages[j.Verdict]
	if tally == nil {
		tally = m.ages[j.Verdict].Tally()
		c.ages[j.Verdict] = tally
	}
	age := c.age(j)
	tally.Observe(age.Seconds(), 1)
	// The age of a claim that copies renew does not tell how near its end is.
	if !m.sliding && m.isPast(nearShare, age) {
		c.nearTTL++
	}
}

// age is how long ago the claim was made.
func (c *counts) age(j *dedup.Judgement) time.Duration {
	if c.judged.IsZero() {
		c.judged = time.Now()
	}
	return max(0, c.judged.Sub(j.ClaimedAt)) // the claimant's clock may be ahead
}

// isPast reports whether a share of a claim's life is over.
func (m *Metrics) isPast(share float64, age time.Duration) bool {
	return m.ttl > 0 && age.Seconds() >= share*m.ttl.Seconds()
}

// count adds a committed batch. Its trace gives the examples.
func (m *Metrics) count(p *plan, b *consumer.Batch, t Trace) {
	m.committed.Inc()
	for o, n := range p.outcomes {
		m.outcomes[o].Add(float64(n))
	}
	for v := range m.verdicts {
		m.verdicts[v].Add(float64(p.verdicts[v]))
	}
	for v, tally := range p.ages {
		m.ages[v].Add(tally)
	}
	m.nearTTL.Add(float64(p.nearTTL))
	m.late.Add(float64(p.late))
	for i, n := range p.refused {
		m.undeliverable[i].Add(float64(n))
	}
	if m.copies != nil {
		for _, r := range p.copies {
			m.copies.WithLabelValues(strconv.Itoa(int(r.of))).Add(float64(r.n))
		}
	}
	m.countEndToEnd(p, b, t)
}

// countEndToEnd leaves out records without a timestamp. The trace of a record tells more about it
// than that of its batch.
func (m *Metrics) countEndToEnd(p *plan, b *consumer.Batch, t Trace) {
	now, tally := time.Now(), m.endToEnd.Tally()
	since := func(timestamp int64) float64 {
		return max(0, now.Sub(time.UnixMilli(timestamp)).Seconds())
	}
	whole := t.Span()
	for _, r := range p.sent {
		if r.of <= 0 {
			continue
		}
		waited := since(r.of)
		tally.Observe(waited, r.n)
		if whole != (telemetry.Span{}) {
			tally.Exemplify(waited, whole)
		}
	}
	for _, r := range t.Spans() {
		if at := b.Records[r.Record].Timestamp.UnixMilli(); at > 0 && p.became[r.Record].sent() {
			tally.Exemplify(since(at), r.Span)
		}
	}
	m.endToEnd.Add(tally)
}
