package server

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// How the page writes numbers and times. assets/status.js writes them in the same way: the browser
// test compares the two.

const none = "–"

// formatCount is a whole number with commas.
func formatCount(n float64) string {
	digits := strconv.FormatFloat(math.Abs(math.Trunc(n)), 'f', 0, 64)
	var b strings.Builder
	if n <= -1 {
		b.WriteByte('-')
	}
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// formatRate has one digit after the point below ten.
func formatRate(perSecond *float64) string {
	switch {
	case perSecond == nil:
		return none
	case *perSecond == 0:
		return "0"
	case *perSecond < 0.05:
		return "<0.1"
	case *perSecond < 9.95:
		return fixed(*perSecond, 1)
	default:
		return formatCount(math.Floor(*perSecond + 0.5))
	}
}

// formatSeconds takes the unit that fits.
func formatSeconds(s *float64) string {
	switch {
	case s == nil:
		return none
	case *s < 0.00995:
		return fixed(*s*1000, 1) + " ms"
	case *s < 0.9995:
		return fixed(*s*1000, 0) + " ms"
	case *s < 99.95:
		return fixed(*s, 1) + " s"
	default:
		return formatCount(*s) + " s"
	}
}

// formatBytes takes the largest unit that leaves something before the point.
func formatBytes(n float64) string {
	unit := 0
	for n >= 1024 && unit < len(byteUnits)-1 {
		n, unit = n/1024, unit+1
	}
	if unit == 0 {
		return formatCount(n) + " " + byteUnits[0]
	}
	return fixed(n, 1) + " " + byteUnits[unit]
}

var byteUnits = []string{"B", "KiB", "MiB", "GiB", "TiB"}

// fixed rounds halves up, as the script does.
func fixed(v float64, digits int) string {
	unit := math.Pow(10, float64(digits))
	return strconv.FormatFloat(math.Floor(v*unit+0.5)/unit, 'f', digits, 64)
}

// formatShare is in percent, with one digit after the point below ten.
func formatShare(share *float64) string {
	switch {
	case share == nil:
		return none
	case *share == 0:
		return "0 %"
	case *share < 0.0005:
		return "<0.1 %"
	case *share < 0.0995:
		return fixed(*share*100, 1) + " %"
	default:
		return fixed(*share*100, 0) + " %"
	}
}

// formatAgo says how long ago something was.
func formatAgo(m moment) string {
	if m.at.IsZero() {
		return none
	}
	seconds := m.now.Sub(m.at).Seconds()
	return formatLasting(&seconds)
}

// formatLasting says how long something lasts, in the unit that leaves at least two of it.
func formatLasting(seconds *float64) string {
	if seconds == nil {
		return none
	}
	s := math.Max(0, math.Floor(*seconds))
	switch {
	case s < 120:
		return fmt.Sprintf("%.0f s", s)
	case s < 2*3600:
		return fmt.Sprintf("%.0f min", math.Floor(s/60))
	case s < 2*86400:
		return fmt.Sprintf("%.0f h", math.Floor(s/3600))
	default:
		return fmt.Sprintf("%.0f d", math.Floor(s/86400))
	}
}

// formatAge is as formatLasting. In a backlog most ages are below a second.
func formatAge(seconds *float64) string {
	if seconds != nil && *seconds < 1 {
		return "<1 s"
	}
	return formatLasting(seconds)
}

// formatTime is UTC, because logs of several machines are compared.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return none
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

// words is the name of a state or a result for people.
func words(name string) string { return strings.ReplaceAll(name, "_", " ") }

// The charts are 150 wide and 24 high: one step for each interval, the latest at the right.
const chartHeight = 24

// formatLine is the path of a line through the values, in a chart that ends at the largest.
func formatLine(values []float64) string {
	top := largest(values)
	if top == 0 {
		return ""
	}
	var b strings.Builder
	for i, v := range values {
		command := " L"
		if i == 0 {
			command = "M"
		}
		fmt.Fprintf(&b, "%s%d %s", command, historyLength-len(values)+i,
			fixed(chartHeight-1-(chartHeight-2)*v/top, 1))
	}
	return b.String()
}

// formatArea is what lies under the line.
func formatArea(values []float64) string {
	line := formatLine(values)
	if line == "" {
		return ""
	}
	return fmt.Sprintf("%s L%d %d L%d %d Z", line, historyLength-1, chartHeight,
		historyLength-len(values), chartHeight)
}

func largest(values []float64) float64 {
	top := 0.0
	for _, v := range values {
		top = max(top, v)
	}
	return top
}
