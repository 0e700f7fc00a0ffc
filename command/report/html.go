package report

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/kdedup/kdedup/process/pagestyle"
)

//go:embed assets
var assets embed.FS

// page needs nothing but itself: style and charts stand in it, and there is no script.
var page = template.Must(template.New("report.html").Funcs(template.FuncMap{
	"count": count, "percent": percent, "maybePercent": maybePercent, "estimate": estimate,
	"rate": rate,
	"span": span, "maybeSpan": maybeSpan, "size": size, "clock": clockTime, "words": words,
	"share": share, "style": style, "first": firstRows, "runNote": func() string { return RunNote },
	"rows":    func(v view, head string, rows []Row) rowsView { return rowsView{v, head, rows} },
	"bar":     func(share float64) template.HTML { return bars{share}.svg() },
	"twoBars": func(r Row, most int64) template.HTML { return twoBars(r, most) },
	"hundredth": func(share float64) string {
		return strings.TrimSuffix(fmt.Sprintf("%.1f", 100*share), ".0") + " %"
	},
}).ParseFS(assets, "assets/report.html"))

func style() template.CSS {
	text, err := assets.ReadFile("assets/report.css")
	if err != nil {
		panic(err) // it is built in
	}
	return template.CSS(pagestyle.CSS + string(text))
}

// view is what the template shows.
type view struct {
	*Report
	Timeline timeline
	Curve    curve
}

// rowsView is what the template "rows" shows.
type rowsView struct {
	View view
	Head string
	Rows []Row
}

// WriteHTML writes the report as one page that can be sent around.
func (r *Report) WriteHTML(to io.Writer) error {
	return page.Execute(to, view{r, timelineOf(r.Rate), curveOfWindows(r.TTL)})
}

// Between names a row of the distribution of ages.
func (a AgeRow) Between() string { return a.between() }

// Where is a place in short.
func (p Place) Where() string { return p.where() }

// Copies are all that are not first.
func (r Row) Copies() int64 { return r.Duplicates + r.Conflicts }

// Most is the largest number of records of a row.
func (v view) Most(rows []Row) int64 {
	var most int64
	for _, r := range rows {
		most = max(most, r.Records)
	}
	return most
}

// MostAged is the largest number of copies in a row of ages.
func (v view) MostAged() int64 {
	var most int64
	for _, r := range v.Ages.Rows {
		most = max(most, r.Copies)
	}
	return most
}

// Advice is the longest of the advised windows, nil if there is none.
func (v view) Advice() *Advice {
	if len(v.TTL.Advised) == 0 {
		return nil
	}
	return &v.TTL.Advised[len(v.TTL.Advised)-1]
}

// Ordered says whether the IDs are ordered by time.
func (v view) Ordered() string {
	switch {
	case v.IDs.TimeOrdered == nil:
		return none
	case *v.IDs.TimeOrdered:
		return "yes"
	}
	return "no"
}

// shownRows is how many rows of a list people get to see; JSON has all.
const shownRows = 24

func firstRows(rows []Row) []Row { return rows[:min(len(rows), shownRows)] }
