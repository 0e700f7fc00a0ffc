package server

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// page renders the status for people. The script then keeps it up to date from /api/status, by the
// data attributes in the template.
type page struct {
	source  Source
	sampler *sampler
	lookup  bool
	lookups chan struct{}
	changes bool // claims may be changed, see mayChange
	letters bool // there is a page of them, which may be read
	every   time.Duration
	clean   func(string) string
	html    *template.Template
}

func newPage(o Options, s *sampler, clean func(string) string) *page {
	p := &page{
		source: o.Source, sampler: s, lookup: o.Lookup, every: o.Every, clean: clean,
		lookups: make(chan struct{}, lookupsAtOnce),
		html: template.Must(template.New("status.html").Funcs(formats).ParseFS(assets,
			"assets/status.html", "assets/letters.html")),
	}
	return p
}

// topics are those that can be looked up.
func (p *page) topics() (inputs []string) {
	for _, pipeline := range p.sampler.latest.Load().Pipelines {
		inputs = append(inputs, pipeline.Input)
	}
	return inputs
}

var formats = template.FuncMap{
	"count": func(v any) string {
		switch n := v.(type) {
		case float64:
			return formatCount(n)
		case *int64:
			if n == nil {
				return none
			}
			return formatCount(float64(*n))
		case *float64:
			if n == nil {
				return none
			}
			return formatCount(*n)
		case int64:
			return formatCount(float64(n))
		case uint64:
			return formatCount(float64(n))
		case int:
			return formatCount(float64(n))
		default:
			panic(fmt.Sprintf("count of a %T", v))
		}
	},
	"bytes": func(n *float64) string {
		if n == nil {
			return none
		}
		return formatBytes(*n)
	},
	"fact": func(f Fact) string {
		if f.Unit == "bytes" {
			return formatBytes(f.Value)
		}
		return formatCount(f.Value)
	},
	"done": func(offset int64) string {
		if offset == 0 {
			return none
		}
		return formatCount(float64(offset))
	},
	"rate": formatRate, "seconds": formatSeconds, "ago": formatAgo, "words": words,
	"share": formatShare, "age": formatAge, "meaning": func(name string) string {
		return meanings[name]
	},
	"time": func(m moment) string { return formatTime(m.at) }, "clock": formatTime,
	"stamp": func(t time.Time) string { return t.Format(time.RFC3339Nano) }, "millis": moment.stamp,
	"line": formatLine, "area": formatArea,
	"peak":   func(values []float64) string { return formatCount(largest(values)) },
	"blank":  func() blanks { return blanks{} },
	"list":   listed,
	"odd":    func(name string) bool { return slices.Contains(odd, name) },
	"row":    func(l *lookupView, d droppedStatus) droppedRow { return droppedRow{d, l != nil} },
	"letter": func(f letterForm, l Letter) sendForm { return sendForm{f, l} },
	"rates":  func(head, list string, all []rate) table { return table{head, list, all} },
}

// odd are outcomes and verdicts of which somebody should know: such messages reach nobody who reads
// the clean topic.
var odd = []string{"conflict", "dropped", "dead_lettered", "missing"}

// table is what the template "rates" shows.
type table struct {
	Head  string
	List  string // where the script finds the numbers
	Rates []rate
}

// droppedRow is a dropped copy whose ID can be looked up, or not.
type droppedRow struct {
	droppedStatus
	Asked bool
}

// listed is a list of texts or numbers as one text.
func listed(all any) string {
	numbers, are := all.([]int)
	if !are {
		return strings.Join(all.([]string), ", ")
	}
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = strconv.Itoa(n)
	}
	return strings.Join(texts, ", ")
}

// blanks are what the script copies for new rows.
type blanks struct {
	Partition Partition
	Event     eventStatus
	Dropped   droppedStatus
	Keeper    Keeper
}

// view is all that the template needs.
type view struct {
	*status
	Settings []Setting
	Millis   int64
	Lookup   *lookupView // nil when look-ups are off
	Topics   []string
	Letters  bool // there is a page of them
}

// Up is when the process was started.
func (v view) Up() moment { return moment{v.About.Started, v.Time.now} }

// Troubles reports whether a check fails.
func (v view) Troubles() bool {
	return slices.ContainsFunc(v.Checks, func(c checkStatus) bool { return !c.OK })
}

// Changed is how many settings differ from their defaults.
func (v view) Changed() int {
	n := 0
	for _, s := range v.Settings {
		if !s.Default {
			n++
		}
	}
	return n
}

type lookupView struct {
	question
	Asked bool
	Error string
	Rows  []Row
}

func (p *page) show(w http.ResponseWriter, _ *http.Request) {
	p.render(w, http.StatusOK, lookupView{})
}

func (p *page) render(w http.ResponseWriter, code int, lookup lookupView) {
	v := view{status: p.sampler.latest.Load(), Settings: p.source.Settings(),
		Millis: p.every.Milliseconds(), Topics: p.topics()}
	if p.lookup {
		v.Lookup, v.Letters = &lookup, p.letters
	}
	p.write(w, code, "status.html", v)
}

// write answers with a page.
func (p *page) write(w http.ResponseWriter, code int, template string, v any) {
	var page bytes.Buffer
	if err := p.html.ExecuteTemplate(&page, template, v); err != nil {
		http.Error(w, "render the page: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = page.WriteTo(w) // the client is gone if this fails
}
