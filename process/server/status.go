package server

import (
	"encoding/json"
	"strings"
	"time"
)

// status is the answer of /api/status, and what the page shows. docs/status-page.md describes its
// fields; a test compares them with testdata/status.json.
type status struct {
	Time       moment           `json:"time"`
	About      About            `json:"process"`
	Configured moment           `json:"configured"`
	State      string           `json:"state"` // ready, not_ready or starting
	Checks     []checkStatus    `json:"checks"`
	Totals     totals           `json:"totals"`
	Pipelines  []pipelineStatus `json:"pipelines"`
	Held       []string         `json:"held"` // partitions that wait at a record, and why
	Dropped    []droppedStatus  `json:"dropped_copies"`
	Store      storeStatus      `json:"store"`
	Clusters   []clusterStatus  `json:"clusters"` // empty where there is one
	API        *apiStatus       `json:"api"`
	Events     []eventStatus    `json:"events"`
}

// totals are sums over the pipelines.
type totals struct {
	Records    rate       `json:"records"`
	Forwarded  rate       `json:"forwarded"`
	Duplicates duplicates `json:"duplicates"`
	Problems   problems   `json:"problems"`
	Lag        lagging    `json:"lag"`
}

type pipelineStatus struct {
	Pipeline
	State      string       `json:"state"` // that of the lane that is worst off, or held
	Records    rate         `json:"records"`
	Duplicates duplicates   `json:"duplicates"`
	Problems   problems     `json:"problems"`
	Lag        lagging      `json:"lag"`
	Lanes      []laneStatus `json:"lanes"`
	Outcomes   []rate       `json:"outcomes"`
	Verdicts   []rate       `json:"verdicts"`
	Batches    []rate       `json:"batches"`
}

// duplicates are the records whose ID another record owns, whatever became of them.
type duplicates struct {
	rate
	Share *float64 `json:"share"` // of the records of five minutes; nil if there are none
}

// problems are the records of five minutes of which somebody should know, and the partitions that
// wait now.
type problems struct {
	Count         float64 `json:"count"` // of all below
	Missing       float64 `json:"missing"`
	Conflicts     float64 `json:"conflicts"`
	Undeliverable float64 `json:"undeliverable"`
	Held          int     `json:"held"`
}

func (p problems) and(o problems) problems {
	return problems{p.Count + o.Count, p.Missing + o.Missing, p.Conflicts + o.Conflicts,
		p.Undeliverable + o.Undeliverable, p.Held + o.Held}
}

type laneStatus struct {
	Lane
	Since   moment         `json:"since"`
	Failure *failureStatus `json:"last_error"`
}

// Hint is that of the last error.
func (l laneStatus) Hint() string {
	if l.Failure == nil {
		return ""
	}
	return l.Failure.Hint
}

type failureStatus struct {
	Text string `json:"text"`
	Hint string `json:"hint"`
	At   moment `json:"at"`
}

// rate is a counter that grows.
type rate struct {
	Name      string   `json:"name"`
	Total     float64  `json:"total"`
	PerSecond *float64 `json:"per_second"` // nil until there are two snapshots
	// per second, one for each interval, the latest last; empty if all are 0
	History []float64 `json:"history"`
}

// lagging is the number of records that wait.
type lagging struct {
	Records *int64    `json:"records"`             // nil until it was measured
	Hidden  int64     `json:"behind_transactions"` // records that are not among them
	History []float64 `json:"history"`
}

type clusterStatus struct {
	Cluster
	State string `json:"state"` // up, down or unknown
	Since moment `json:"since"`
	Error string `json:"error"`
}

type storeStatus struct {
	Type         string   `json:"type"`
	State        string   `json:"state"` // up, blocked, down or unknown
	Since        moment   `json:"since"`
	Error        string   `json:"error"`
	Blocked      []string `json:"blocked"`
	BlockedSince moment   `json:"blocked_since"`
	Claims       rate     `json:"claims"`
	Results      []rate   `json:"results"`
	Batch        latency  `json:"batch"`
	Facts        []Fact   `json:"facts"`
	Keepers      []Keeper `json:"keepers"`
	Forecast     forecast `json:"forecast"`
}

// forecast is what the store will hold once the oldest claims end, if IDs come as in the last five
// minutes. A field is nil where that is not known.
type forecast struct {
	Claims *float64 `json:"claims"`
	Bytes  *float64 `json:"bytes"`
}

// latency is about the last ten seconds; nil when nothing was measured in them.
type latency struct {
	Mean *float64 `json:"mean_seconds"`
	P99  *float64 `json:"p99_seconds"` // at most this
}

type checkStatus struct {
	Name  string `json:"name"`
	OK    bool   `json:"ok"`
	Error string `json:"error"`
	At    moment `json:"at"`

	notes []string // for /readyz
}

type droppedStatus struct {
	Topic    string   `json:"topic"`
	At       moment   `json:"at"`
	Place    string   `json:"place"`
	Owner    string   `json:"owner"`
	Age      *float64 `json:"age_seconds"` // from the owner's claim to the drop
	Conflict bool     `json:"conflict"`
	Differs  string   `json:"differs"` // in what a conflict differs; empty: not known
	Became   string   `json:"became"`
	ID       string   `json:"id"` // empty where look-ups are off
	Hex      bool     `json:"id_is_hex"`
}

// Alike says whether the copy has the content of the owner.
func (d droppedStatus) Alike() string {
	if d.Conflict {
		return "other"
	}
	return "same"
}

// Content is that of the copy, beside that of the owner.
func (d droppedStatus) Content() string {
	switch {
	case d.Differs != "":
		return "other: " + d.Differs
	case d.Conflict:
		return "other"
	}
	return "same"
}

type eventStatus struct {
	Level   string `json:"level"`
	Message string `json:"message"`
	Error   string `json:"error"`
	Hint    string `json:"hint"`
	Topic   string `json:"topic"`
	Lane    string `json:"lane"`
	Details string `json:"details"`
	Count   int    `json:"count"`
	First   moment `json:"first"`
	Last    moment `json:"last"`
}

// Where is the pipeline and the lanes of an event.
func (e eventStatus) Where() string {
	switch {
	case e.Lane == "":
		return e.Topic
	case strings.Contains(e.Lane, ","):
		return strings.TrimSpace(e.Topic + " lanes " + e.Lane)
	}
	return strings.TrimSpace(e.Topic + " lane " + e.Lane)
}

// moment is a point in time that knows how long ago it is.
type moment struct{ at, now time.Time }

// MarshalJSON is RFC 3339 in UTC with milliseconds, or null.
func (m moment) MarshalJSON() ([]byte, error) {
	if m.at.IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(m.stamp())
}

func (m moment) stamp() string { return m.at.UTC().Format("2006-01-02T15:04:05.000Z") }
