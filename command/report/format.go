package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// How people read the numbers; the status page writes them in the same way.

const none = "–"

// WriteJSON writes the report for programs.
func (r *Report) WriteJSON(to io.Writer) error {
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// count is a whole number with commas.
func count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 && digits[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// Counted is a number with its noun or verb, for one and for many.
func Counted(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + many
}

// Capital begins a sentence with a text.
func Capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// Number, Percent and Span are for what shows the same numbers elsewhere.
func Number(n int64) string { return count(n) }

// Percent is a share of one.
func Percent(share float64) string { return percent(share) }

// Span is a duration in its two largest units.
func Span(d time.Duration) string { return span(d.Seconds()) }

// KindName is a kind of ID for people.
func KindName(kind string) string { return kindNames[kind] }

// WriteTTL writes a duration as the configuration takes it.
func WriteTTL(d time.Duration) string { return writeTTL(d) }

// estimate has two significant digits: nobody knows more.
func estimate(n *float64) string {
	if n == nil {
		return none
	}
	unit := math.Pow(10, math.Max(0, math.Floor(math.Log10(math.Max(*n, 1)))-1))
	return count(int64(math.Ceil(*n/unit) * unit))
}

func rate(perSecond float64) string {
	switch {
	case perSecond == 0:
		return none
	case perSecond < 9.95:
		return strconv.FormatFloat(perSecond, 'g', 2, 64)
	}
	return count(int64(math.Round(perSecond)))
}

// percent keeps what is not all from looking like all, and what is not nothing from looking like
// nothing.
func percent(share float64) string {
	p := 100 * share
	switch {
	case share == 0 || share == 1:
		return fmt.Sprintf("%.0f %%", p)
	case p < 0.01:
		return "<0.01 %"
	case p < 1 || p > 99: // rounded, so that they add up
		return strconv.FormatFloat(math.Min(math.Round(p*100)/100, 99.99), 'f', 2, 64) + " %"
	}
	return strconv.FormatFloat(math.Round(p*10)/10, 'f', 1, 64) + " %"
}

func maybePercent(share *float64) string {
	if share == nil {
		return none
	}
	return percent(*share)
}

// span is a duration in its two largest units.
func span(seconds float64) string {
	switch {
	case seconds < 1:
		return fmt.Sprintf("%.0f ms", 1000*seconds)
	case seconds < 120 && seconds != 60:
		return strconv.FormatFloat(math.Round(seconds*10)/10, 'f', -1, 64) + " s"
	}
	u := 0
	for seconds < 2*units[u].length && seconds != units[u].length {
		u++
	}
	whole := math.Floor(seconds / units[u].length)
	text := fmt.Sprintf("%.0f %s", whole, units[u].name)
	rest := math.Floor((seconds - whole*units[u].length) / units[u+1].length)
	if whole < 10 && rest > 0 {
		text += fmt.Sprintf(" %.0f %s", rest, units[u+1].name)
	}
	return text
}

var units = []struct {
	name   string
	length float64 // seconds
}{{"d", 86400}, {"h", 3600}, {"min", 60}, {"s", 1}}

func maybeSpan(seconds *float64) string {
	if seconds == nil {
		return none
	}
	return span(*seconds)
}

func size(bytes *float64) string {
	if bytes == nil {
		return none
	}
	n, unit := *bytes, 0
	names := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	for n >= 1000 && unit < len(names)-1 {
		n, unit = n/1024, unit+1
	}
	digits := 0
	if n < 9.95 && unit > 0 {
		digits = 1
	}
	return strconv.FormatFloat(n, 'f', digits, 64) + " " + names[unit]
}

func clockTime(t time.Time) string {
	if t.IsZero() {
		return none
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

func words(name string) string { return strings.ReplaceAll(name, "_", " ") }

// between names a row of the distribution of ages.
func (a AgeRow) between() string {
	switch {
	case a.To == nil:
		return "over " + span(a.From)
	case a.From == 0:
		return "under " + span(*a.To)
	}
	return span(a.From) + " to " + span(*a.To)
}

var kindNames = map[string]string{
	KindUUIDv1: "UUID version 1", KindUUIDv4: "UUID version 4", KindUUIDv6: "UUID version 6",
	KindUUIDv7: "UUID version 7",
	KindUUID:   "UUID of another version", KindULID: "ULID", KindKSUID: "KSUID",
	KindObjectID:  "ObjectID",
	KindSnowflake: "snowflake", KindNumber: "number", KindHash: "hash, or hexadecimal digits",
	KindOther: "another form",
}
