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
	Store      storeStatus      `json:"store"`
	Events     []eventStatus    `json:"events"`
}

// totals are sums over the pipelines.
type totals struct {
	Records   rate    `json:"records"`
	Forwarded rate    `json:"forwarded"`
	Lag       lagging `json:"lag"`
}

type pipelineStatus struct {
	Pipeline
	Records  rate         `json:"records"`
	Lag      lagging      `json:"lag"`
	Lanes    []laneStatus `json:"lanes"`
	Outcomes []rate       `json:"outcomes"`
	Verdicts []rate       `json:"verdicts"`
	Batches  []rate       `json:"batches"`
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
	Records *int64    `json:"records"` // nil until it was measured
	History []float64 `json:"history"`
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

// Where is the pipeline and lane of an event.
func (e eventStatus) Where() string {
	if e.Lane == "" {
		return e.Topic
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
