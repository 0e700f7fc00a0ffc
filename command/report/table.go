package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"
)

// WriteTable writes the report for a terminal.
func (r *Report) WriteTable(to io.Writer) error {
	w := &tableWriter{out: tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)}
	w.line("%s, by %s, %s to %s", r.Topic, r.MessageID, clockTime(r.Range.From),
		clockTime(r.Range.To))
	w.line("%s", r.Headline())
	r.tableOfTotals(w)
	r.tableOfTTLs(w)
	r.tableOfAges(w)
	r.tableOfRun(w)
	w.rows("PARTITION", r.Partitions)
	if r.ByHeader != nil {
		w.rows("HEADER "+strings.ToUpper(r.ByHeader.Header), r.ByHeader.Values)
	}
	r.tableOfIDs(w)
	w.section("NOTES")
	for _, note := range []string{r.RangeNote(), r.ClockNote(), r.EstimateNote(), RunNote} {
		w.line("%s", note)
	}
	return w.out.Flush()
}

func (r *Report) tableOfTotals(w *tableWriter) {
	w.section("RECORDS")
	w.row("records", count(r.Totals.Records), rate(r.Rate.RecordsPerSecond)+" a second, peak "+
		rate(r.Rate.PeakPerSecond))
	w.row("distinct ids", count(r.Totals.DistinctIDs), rate(r.Rate.IDsPerSecond)+
		" new ones a second")
	w.row("copies", count(r.Totals.Copies), percent(r.Totals.CopyShare)+" of the records; "+
		percent(share(r.Totals.OtherPartition, r.Totals.Copies))+
		" of them on another partition than the first")
	w.row("  duplicates", count(r.Totals.Duplicates), "the same content")
	w.row("  conflicts", count(r.Totals.Conflicts), "other content under the same ID, "+
		count(r.Totals.ConflictingIDs)+" IDs")
	w.row("without an id", count(r.Totals.Missing), "")
	for _, m := range r.Missing {
		w.row("  "+words(m.Reason), count(m.Records), "")
	}
	if r.Totals.Exempt > 0 {
		w.row("exempt", count(r.Totals.Exempt), "only_if does not hold for them")
	}
	if r.Totals.Tombstones > 0 {
		w.row("tombstones", count(r.Totals.Tombstones), "on_tombstone is about them")
	}
}

// lagWarning is about a group whose lag comes near the ttl.
const lagWarning = "An outage of about a ttl, or a lag between partitions longer than it, forwards two copies"

func (r *Report) tableOfTTLs(w *tableWriter) {
	head := []string{"TTL", "WINDOW", "CATCHES", "CLAIMS", "DISK"}
	if r.Settings.Buckets > 0 {
		head = append(head, "ROWS PER BUCKET")
	}
	w.section(head...)
	line := func(name string, t Window) {
		w.row([]string{name, t.TTL, maybePercent(t.CaughtShare), estimate(t.Rows), size(t.Bytes),
			estimate(t.RowsPerBucket)}[:len(head)]...)
	}
	line("configured", r.TTL.Configured)
	for _, a := range r.TTL.Advised {
		line("for "+strings.TrimSuffix(fmt.Sprintf("%.1f", 100*a.Share), ".0")+" %", a.Window)
	}
	if len(r.TTL.OldUnread) > 0 {
		w.row("warning",
			fmt.Sprintf("partitions %v: what the group has not read is older than half the ttl. %s",
				r.TTL.OldUnread, lagWarning), "")
	}
	if r.TTL.Short {
		w.row("advice", "none: the range is too short to tell how late copies come", "")
	}
}

func (r *Report) tableOfAges(w *tableWriter) {
	if r.Totals.Copies == 0 {
		return
	}
	w.section("AGE OF COPIES", "COPIES", "SHARE")
	for _, row := range r.Ages.Rows {
		if row.Copies > 0 {
			w.row(row.between(), count(row.Copies), percent(share(row.Copies, r.Totals.Copies)))
		}
	}
	w.row("half are under", maybeSpan(r.Ages.P50), "")
	w.row("99 % are under", maybeSpan(r.Ages.P99), "")
	w.row("the oldest", maybeSpan(r.Ages.Largest), "")
}

func (r *Report) tableOfRun(w *tableWriter) {
	w.section("RUN WOULD HAVE", "RECORDS", "mode "+r.Settings.Mode+", ttl "+r.TTL.Configured.TTL)
	for _, c := range r.Run.Outcomes {
		w.row(words(c.Name), count(c.Records), percent(share(c.Records, r.Totals.Records)))
	}
}

func (r *Report) tableOfIDs(w *tableWriter) {
	if len(r.TopIDs) > 0 {
		w.section("MOST REPEATED IDS", "RECORDS", "FIRST", "LAST")
		for _, t := range r.TopIDs {
			w.row(t.ID, count(t.Records), clockTime(t.First), clockTime(t.Last))
		}
	}
	if len(r.Conflicts) > 0 {
		w.section("CONFLICTS, EXAMPLES", "FIRST", "OTHER CONTENT", "AT")
		for _, c := range r.Conflicts {
			w.row(c.ID, c.First.where(), c.Other.where(), clockTime(c.Other.At))
		}
	}
	if d := r.Differing; d.Compared > 0 {
		w.section("CONFLICTS DIFFER IN", "CONFLICTS", "SHARE")
		for _, set := range d.Sets {
			w.row(set.Named(), count(set.Conflicts), percent(share(set.Conflicts, d.Compared)))
		}
		if d.Whole > 0 {
			w.row("the key, or a value without fields", count(d.Whole),
				percent(share(d.Whole, d.Compared)))
		}
		if note := r.DifferNote(); note != "" {
			w.line("%s", note)
		}
	}
	w.section("MESSAGE IDS")
	w.line("%s, %.0f bytes on average", r.KindNote(), r.IDs.MeanBytes)
	for _, note := range []string{r.SpellingNote(), r.CutOffNote()} {
		if note != "" {
			w.line("%s", note)
		}
	}
	w.line("%s", r.OrderNote())
}

func (p Place) where() string { return fmt.Sprintf("%d@%d", p.Partition, p.Offset) }

// tableWriter writes sections with columns of their own.
type tableWriter struct{ out *tabwriter.Writer }

func (w *tableWriter) line(format string, args ...any) {
	fmt.Fprintln(w.out, Printable(fmt.Sprintf(format, args...)))
}

func (w *tableWriter) section(head ...string) {
	w.line("")
	w.row(head...)
}

func (w *tableWriter) row(cells ...string) {
	for i := range cells {
		cells[i] = Printable(cells[i])
	}
	fmt.Fprintln(w.out, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
}

func (w *tableWriter) rows(head string, rows []Row) {
	w.section(head, "RECORDS", "COPIES", "SHARE", "CONFLICTS", "WITHOUT ID")
	for _, r := range firstRows(rows) {
		w.row(r.Name, count(r.Records), count(r.Duplicates+r.Conflicts), percent(r.CopyShare),
			count(r.Conflicts), count(r.Missing))
	}
	if more := len(rows) - len(firstRows(rows)); more > 0 {
		w.line("and %s more; --format json has all", count(int64(more)))
	}
}

// Printable keeps what stands in an ID or a header from steering the terminal.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '\uFFFD'
	}, s)
}
