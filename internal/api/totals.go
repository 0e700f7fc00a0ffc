package api

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Totals is what was counted since the start, for the page of operators.
type Totals struct {
	UnderWay int
	Answers  map[string]float64            // by code
	Verdicts map[string]map[string]float64 // by scope and verdict
	Outcomes map[string]map[string]float64 // of Begin, by scope and outcome
	Refused  map[string]float64            // by reason
	Callers  map[string]float64            // requests by the caller's name
	InHand   map[string]int                // keys that callers hold, by scope, see keysInHand
}

// Codes are those of answers, the usual ones first.
func Codes() []string {
	return []string{CodeOK, "invalid_argument", "permission_denied", "failed_precondition",
		"deadline_exceeded", "unavailable", "canceled", "internal", CodeUnread}
}

// Outcomes are those of Begin.
func Outcomes() []string {
	return []string{outcomeAcquired, outcomeInProgress, outcomeCompleted, outcomeFailed,
		outcomeConflict}
}

// Reasons are those for which requests are refused before their method sees them.
func Reasons() []string { return []string{refusedStranger, refusedBusy} }

// Totals reads the counters.
func (m *Metrics) Totals() Totals {
	t := Totals{Answers: make(map[string]float64), Refused: make(map[string]float64),
		Callers: make(map[string]float64), InHand: m.inHand.count(time.Now())}
	each(m.underWay, func(_ map[string]string, value float64) { t.UnderWay = int(value) })
	each(m.seconds, func(of map[string]string, n float64) { t.Answers[of["code"]] += n })
	each(m.refused, func(of map[string]string, n float64) { t.Refused[of["reason"]] += n })
	t.Verdicts, t.Outcomes = byScope(m.verdicts, "verdict"), byScope(m.begins, "outcome")
	m.callers.Range(func(name, n any) bool {
		t.Callers[name.(string)] = float64(n.(*atomic.Int64).Load())
		return true
	})
	return t
}

func byScope(c prometheus.Collector, label string) map[string]map[string]float64 {
	all := make(map[string]map[string]float64)
	each(c, func(of map[string]string, n float64) {
		if all[of["scope"]] == nil {
			all[of["scope"]] = make(map[string]float64)
		}
		all[of["scope"]][of[label]] = n
	})
	return all
}

// each tells the values of a family; that of a histogram is how often it was observed.
func each(c prometheus.Collector, tell func(of map[string]string, value float64)) {
	series := make(chan prometheus.Metric)
	go func() {
		c.Collect(series)
		close(series)
	}()
	for s := range series {
		var shown dto.Metric
		if s.Write(&shown) != nil {
			continue
		}
		of := make(map[string]string)
		for _, l := range shown.GetLabel() {
			of[l.GetName()] = l.GetValue()
		}
		tell(of, shown.GetGauge().GetValue()+shown.GetCounter().GetValue()+
			float64(shown.GetHistogram().GetSampleCount()))
	}
}

func (m *Metrics) called(caller *Caller) {
	if caller == nil {
		return
	}
	n, known := m.callers.Load(caller.Name)
	if !known {
		n, _ = m.callers.LoadOrStore(caller.Name, new(atomic.Int64))
	}
	n.(*atomic.Int64).Add(1)
}

// keysInHand are the keys that this process told callers to be theirs, until it is told of their
// end or their hold is over: an end may be told to another process of the same store.
type keysInHand struct {
	mu    sync.Mutex
	until map[string]map[string]time.Time // by scope and key
	kept  int
}

// mostInHand bounds the memory; what is beyond is not counted.
const mostInHand = 100_000

func (k *keysInHand) took(scope, key string, hold time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.until == nil {
		k.until = make(map[string]map[string]time.Time)
	}
	if k.until[scope] == nil {
		k.until[scope] = make(map[string]time.Time)
	}
	if _, known := k.until[scope][key]; !known {
		if k.kept >= mostInHand {
			return
		}
		k.kept++
	}
	k.until[strings.Clone(scope)][strings.Clone(key)] = time.Now().Add(hold)
}

func (k *keysInHand) ended(scope, key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, known := k.until[scope][key]; known {
		delete(k.until[scope], key)
		k.kept--
	}
}

// count forgets those whose hold is over.
func (k *keysInHand) count(now time.Time) map[string]int {
	k.mu.Lock()
	defer k.mu.Unlock()
	all, kept := make(map[string]int), 0
	for scope, keys := range k.until {
		maps.DeleteFunc(keys, func(_ string, until time.Time) bool { return until.Before(now) })
		all[scope] = len(keys)
		kept += len(keys)
	}
	k.kept = kept
	return all
}
