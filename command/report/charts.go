package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"
)

// The charts are drawn without text, so that they may be stretched; what is written beside them
// keeps its size on a phone. All that goes into them is a number or a text of this file.

const (
	chartWidth  = 1000
	chartHeight = 200
)

// tick is a mark on an axis, from 0 to 100.
type tick struct {
	At   float64
	Text string
}

// timeline shows records and the copies among them.
type timeline struct {
	SVG    template.HTML
	Top    string // records a second at the upper end
	Middle string
	Ticks  []tick
	Width  string // of a bar
}

func timelineOf(r Rate) timeline {
	if len(r.Bars) == 0 {
		return timeline{}
	}
	var highest int64
	for _, b := range r.Bars {
		highest = max(highest, b.Records)
	}
	perSecond := roundUp(float64(max(highest, 1)) / r.BarSeconds)
	top := perSecond * r.BarSeconds
	var svg strings.Builder
	step := float64(chartWidth) / float64(len(r.Bars))
	gap := min(1.5, step/5)
	for i, b := range r.Bars {
		x, all, copies := float64(i)*step, barHeight(b.Records, top), barHeight(b.Copies, top)
		fmt.Fprintf(&svg, `<g><title>%s: %s records, %s copies</title>`, clockTime(b.At),
			count(b.Records), count(b.Copies))
		fmt.Fprintf(&svg, `<rect class="hit" x="%.2f" y="0" width="%.2f" height="%d"/>`, x, step,
			chartHeight)
		rect(&svg, "records", x+gap/2, all-copies, step-gap, copies)
		rect(&svg, "copies", x+gap/2, copies, step-gap, 0)
		svg.WriteString("</g>")
	}
	t := timeline{SVG: template.HTML(svg.String()), Width: span(r.BarSeconds)}
	t.Top, t.Middle = rate(perSecond)+"/s", rate(perSecond/2)+"/s"
	t.Ticks = timeTicks(r.Bars[0].At, time.Duration(r.BarSeconds*float64(len(r.Bars))*1e9))
	return t
}

func barHeight(n int64, top float64) float64 { return chartHeight * float64(n) / top }

// roundUp is the next number of one digit of which the half is round, too.
func roundUp(f float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(f)))
	for _, digit := range []float64{1, 2, 4, 6, 8} {
		if f <= digit*unit*(1+1e-9) {
			return digit * unit
		}
	}
	return 10 * unit
}

// rect stands on what is below it.
func rect(to *strings.Builder, class string, x, height, width, below float64) {
	if height > 0 {
		fmt.Fprintf(to, `<rect class="%s" x="%.2f" y="%.2f" width="%.2f" height="%.2f"/>`,
			class, x, chartHeight-below-height, width, height)
	}
}

const (
	oneDay    = 24 * time.Hour
	mostTicks = 5
)

// tickSteps are what people count time in.
var tickSteps = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second,
	30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute,
	15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour,
	12 * time.Hour, oneDay, 2 * oneDay, 5 * oneDay, 10 * oneDay, 30 * oneDay, 90 * oneDay,
	365 * oneDay,
}

// timeTicks are at round times.
func timeTicks(start time.Time, length time.Duration) (ticks []tick) {
	at := slices.IndexFunc(tickSteps, func(s time.Duration) bool { return length <= mostTicks*s })
	if at < 0 {
		at = len(tickSteps) - 1
	}
	step := tickSteps[at]
	format := "15:04:05"
	switch {
	case step >= oneDay:
		format = "2 Jan"
	case length > oneDay:
		format = "2 Jan 15:04"
	case step >= time.Minute:
		format = "15:04"
	}
	first := start.Truncate(step)
	if first.Before(start) {
		first = first.Add(step)
	}
	for t := first; t.Before(start.Add(length)); t = t.Add(step) {
		if place := 100 * float64(t.Sub(start)) / float64(length); place < 94 {
			ticks = append(ticks, tick{place, t.Format(format)})
		}
	}
	return ticks
}

// curve shows the share of copies that each window catches.
type curve struct {
	SVG    template.HTML
	Ticks  []tick
	Legend []mark
}

// mark is a window in the curve.
type mark struct {
	Class string
	Text  string
}

// The curve's axis is logarithmic, from one second on.
func curveOfWindows(t TTL) curve {
	if len(t.Curve) == 0 {
		return curve{}
	}
	end := math.Max(t.Configured.Seconds, t.Curve[len(t.Curve)-1].Seconds) * 1.5
	x := func(seconds float64) float64 {
		return chartWidth * math.Log(math.Max(seconds, 1)) / math.Log(end)
	}
	var svg, line strings.Builder
	last := chartHeight * (1 - t.Curve[0].CaughtShare)
	fmt.Fprintf(&line, "M%.2f %.2f", 0.0, last)
	for _, p := range t.Curve {
		at := chartHeight * (1 - p.CaughtShare)
		fmt.Fprintf(&line, " L%.2f %.2f", x(p.Seconds), at)
		last = at
	}
	fmt.Fprintf(&line, " L%d %.2f", chartWidth, last)
	fmt.Fprintf(&svg, `<path class="area" d="%s L%d %d L0 %d Z"/><path class="line" d="%s"/>`,
		&line, chartWidth, chartHeight, chartHeight, &line)
	c := curve{Ticks: spanTicks(x, end)}
	for i, a := range t.Advised {
		c.Legend = append(c.Legend, mark{fmt.Sprintf("advised advised-%d", i),
			fmt.Sprintf("%s: %s", a.TTL, percent(*a.CaughtShare))})
		upright(&svg, c.Legend[i].Class, x(a.Seconds))
	}
	configured := mark{"configured", fmt.Sprintf("configured, %s: %s", t.Configured.TTL,
		maybePercent(t.Configured.CaughtShare))}
	upright(&svg, configured.Class, x(t.Configured.Seconds))
	c.Legend = append(c.Legend, configured)
	c.SVG = template.HTML(svg.String())
	return c
}

func upright(to *strings.Builder, class string, x float64) {
	fmt.Fprintf(to, `<path class="mark %s" d="M%.2f 0 V%d"/>`, class, x, chartHeight)
}

func spanTicks(x func(float64) float64, end float64) []tick {
	var ticks []tick
	for _, t := range []struct {
		seconds float64
		text    string
	}{{1, "1 s"}, {10, "10 s"}, {60, "1 min"}, {600, "10 min"}, {3600, "1 h"}, {21600, "6 h"},
		{86400, "1 d"}, {7 * 86400, "7 d"}, {30 * 86400, "30 d"}, {365 * 86400, "1 y"}} {
		at := x(t.seconds) * 100 / chartWidth
		if t.seconds < end && at < 94 && (len(ticks) == 0 || at-ticks[len(ticks)-1].At >= 12) {
			ticks = append(ticks, tick{at, t.text})
		}
	}
	return ticks
}

// bars is one bar of parts behind each other, each a share of the whole width.
type bars []float64

func (b bars) svg() template.HTML {
	var svg strings.Builder
	svg.WriteString(
		`<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">`)
	at := 0.0
	for i, part := range b {
		class := "records"
		if i == 0 {
			class = "copies"
		}
		if part > 0 {
			width := max(100*part, 0.4)
			fmt.Fprintf(&svg, `<rect class="%s" x="%.2f" y="0" width="%.2f" height="10"/>`, class,
				at, width)
			at += width
		}
	}
	svg.WriteString("</svg>")
	return template.HTML(svg.String())
}

// twoBars shows the copies of a row before its other records, in proportion to the longest row.
func twoBars(r Row, most int64) template.HTML {
	return bars{share(r.Copies(), most), share(r.Records-r.Copies(), most)}.svg()
}
